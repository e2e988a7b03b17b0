// Transport decorator for the authority `impersonation`: what an agent does to its own Node and the pods on it goes out
// in the name of that Node, so that the API server holds it to what a kubelet may do there; everything else (Leases,
// other Nodes, PodDisruptionBudgets, DaemonSets, ConfigMaps, Events, reviews) goes out in the name of the credential.
//
// No group, UID or extra is ever impersonated: any of them would ask for another, wider right. Borrows the inner
// transport, which must not impersonate by itself. Errors and cancellation: those of the inner transport.
#pragma once

#include <string>
#include <string_view>

#include "http/transport.hpp"

namespace haulout::agent {

// One of: get, list, watch or patch of this Node, patch of its status, list or watch of the pods on it, an eviction.
// Which pod is evicted the server checks. Pure.
bool goes_as_node(const http::Request& request, std::string_view node);

class NodeTransport final : public http::Transport {
 public:
  // With an empty name nothing is impersonated.
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
