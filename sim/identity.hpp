// Identities of callers of the simulated API server. The server recognizes a caller by its bearer token, as it
// recognizes a pod by the token of its ServiceAccount. Requests without a token, or with an unknown one, come from the
// user in Switches::user (world.hpp).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/transport.hpp"

namespace haulout::sim {

struct Identity {
  std::string username;
  std::string uid;
  std::vector<std::string> groups;
  // Values from a token that is bound to a pod; empty for other tokens.
  std::string node_name;
  std::string node_uid;
  std::string pod_name;
  std::string pod_uid;
  std::string credential_id{};
};

// Returns the identity of a ServiceAccount with its groups, not bound to a pod.
Identity service_account(std::string_view ns, std::string_view name);
// Returns the identity of the client certificate of this node's kubelet. It may do what sim/node_authorizer.hpp allows.
// All other identities may do everything that is not in Switches::forbidden.
Identity kubelet_of(std::string_view node);

// Maps a token to the identity of its caller. The value is empty for a token that is no longer valid.
using Tokens = std::map<std::string, std::optional<Identity>>;

// A Transport that adds the bearer token to every request and passes it on to the inner transport. Borrows the inner
// transport.
class TokenTransport final : public http::Transport {
 public:
  TokenTransport(http::Transport& inner, std::string token) : inner_(inner), token_(std::move(token)) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

 private:
  http::Transport& inner_;
  std::string token_;
};

}  // namespace haulout::sim
