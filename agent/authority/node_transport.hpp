// Transport decorator for the authority `impersonation`. Requests of the agent for its own Node and the pods on it
// impersonate that Node, so that the API server restricts them to what a kubelet may do there. All other requests
// (Leases, other Nodes, PodDisruptionBudgets, DaemonSets, ConfigMaps, Events, reviews) use the credential's own name.
//
// Never impersonates a group, UID or extra: each of them would need another, wider right. Borrows the inner transport,
// which must not impersonate by itself. Errors and cancellation are those of the inner transport.
#pragma once

#include <string>
#include <string_view>

#include "http/transport.hpp"

namespace haulout::agent {

// Returns true for get, list, watch or patch of this Node, patch of its status, list or watch of the pods on it, and
// every eviction (the server checks that the evicted pod is on the Node). Pure.
bool goes_as_node(const http::Request& request, std::string_view node);

class NodeTransport final : public http::Transport {
 public:
  // If the name is empty, impersonates no Node.
  NodeTransport(http::Transport& inner, std::string impersonated_node)
      : inner_(inner), node_(std::move(impersonated_node)) {}

  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override;
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override;

 private:
  http::Request signed_by(http::Request request) const;

  http::Transport& inner_;
  std::string node_;
};

}  // namespace haulout::agent
