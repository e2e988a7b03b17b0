// What is tried to find an authority: requests, and what their refusal or success means. Pure data.
#pragma once

#include <string>
#include <vector>

#include "agent/authority/authority.hpp"
#include "http/message.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

struct Attempt {
  std::string what;  // "evict pods on the own Node"
  http::Request request;
  bool found_by_absence = false;  // a 404 about something that need not be there is an answer, too
};

struct AttemptContext {
  OwnNode node;
  std::string ns;                         // of the Leases
  std::string pod_ns, pod_name, pod_uid;  // of the agent; the namespace is `ns` outside of a pod
  WallTime now{};
  SlotsChoice slots = SlotsChoice::lease;
};

// Without these there is no agent; as the Node under impersonation.
std::vector<Attempt> needed_attempts(const AttemptContext& context);
// What must be refused where the API server holds a node's identity to its own Node.
std::vector<Attempt> refused_to_nodes(const AttemptContext& context);
// What must be refused to the ServiceAccount by itself, by its roles or by the admission policies: `what` names that
// which nothing keeps in otherwise. In a pod only.
std::vector<Attempt> refused_to_service_accounts(const AttemptContext& context);

struct RightAttempt {
  bool Rights::* right;
  http::Request request;
  bool found_by_absence;
  std::string without;  // what follows when it is refused
};
std::vector<RightAttempt> right_attempts(const AttemptContext& context);

}  // namespace haulout::agent
