// Who calls the simulated API server. A caller is known by its bearer token, as a pod is by the token of its
// ServiceAccount; whoever sends no token, or one that nobody gave out, is the user of the switches.
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
  // Claims of a token that is bound to a pod; empty otherwise.
  std::string node_name;
  std::string node_uid;
  std::string pod_name;
  std::string pod_uid;
  std::string credential_id{};
};

// A ServiceAccount with its groups, not bound to a pod.
Identity service_account(std::string_view ns, std::string_view name);
// Of a kubelet's client certificate. It may do what sim/node_authorizer.hpp says; all others may do everything that is
// not switched off.
Identity kubelet_of(std::string_view node);

// By token; nothing for a token that is no longer valid.
using Tokens = std::map<std::string, std::optional<Identity>>;

// Transport decorator: every request carries the token. Borrows the inner transport.
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
