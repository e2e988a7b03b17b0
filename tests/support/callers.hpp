// Callers of the simulated API server in tests: their identities, and a transport that sends the token of one caller
// with each request. It borrows the transport to which it passes the requests on.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

#include "http/transport.hpp"
#include "sim/world.hpp"

namespace haulout::sim {

// Returns the identity of a ServiceAccount with its groups, not bound to a pod.
inline Identity service_account(std::string_view ns, std::string_view name) {
  Identity identity;
  identity.username = fmt::format("system:serviceaccount:{}:{}", ns, name);
  identity.groups = {"system:serviceaccounts", fmt::format("system:serviceaccounts:{}", ns), "system:authenticated"};
  return identity;
}

// Returns the identity of the client certificate of this node's kubelet.
inline Identity kubelet_of(std::string_view node) {
  Identity identity;
  identity.username = fmt::format("system:node:{}", node);
  identity.groups = {"system:nodes", "system:authenticated"};
  identity.credential_id = "X509SHA256=84c9";
  return identity;
}

// A Transport that adds the bearer token to every request.
class TokenTransport final : public http::Transport {
 public:
  TokenTransport(http::Transport& inner, std::string token) : inner_(inner), token_(std::move(token)) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    request.headers.set("Authorization", "Bearer " + token_);
    co_return co_await inner_.round_trip(std::move(request), deadline);
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override {
    request.headers.set("Authorization", "Bearer " + token_);
    co_return co_await inner_.open(std::move(request), deadline);
  }

 private:
  http::Transport& inner_;
  std::string token_;
};

}  // namespace haulout::sim
