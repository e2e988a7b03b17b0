// The trial requests that find_authority.hpp sends, and what their success or refusal means. Pure data.
#pragma once

#include <string>
#include <vector>

#include "agent/authority/authority.hpp"
#include "http/message.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

struct Attempt {
  std::string what;  // end of a message: "it may not …" if needed, "nothing restricts …" if it must be refused
  http::Request request;
  bool found_by_absence = false;  // a 404 also counts as success: the object need not exist
};

struct AttemptContext {
  OwnNode node;
  std::string ns;                         // namespace of the Leases and of the ConfigMap
  std::string pod_ns, pod_name, pod_uid;  // the agent's pod; outside of a pod `pod_ns` is `ns`, the others are empty
  WallTime now{};
  SlotsChoice slots = SlotsChoice::lease;
};

// Requests that must succeed, because the agent cannot work without them. Under `impersonation` they are sent as the
// Node.
std::vector<Attempt> needed_attempts(const AttemptContext& context);
// Requests that the API server must refuse if it restricts a node's identity to its own Node.
std::vector<Attempt> refused_to_nodes(const AttemptContext& context);
// Requests that the API server must refuse to the ServiceAccount itself, by its roles or by the admission policies. If
// it accepts one, `what` names the unrestricted right. Only for an agent in a pod.
std::vector<Attempt> refused_to_service_accounts(const AttemptContext& context);

struct RightAttempt {
  bool Rights::* right;
  http::Request request;
  bool found_by_absence;
  std::string without;  // for people: what the agent cannot do without this right
};
std::vector<RightAttempt> right_attempts(const AttemptContext& context);

}  // namespace haulout::agent
