// What keeps a credential to its own Node on a real API server (1.36), on the simulated one, beside its Node
// authorizer: constrained impersonation, and the four admission policies. Each can be switched off; the answers are
// those of the real server. Borrows the cluster.
#pragma once

#include <set>
#include <string>

#include "sim/cluster.hpp"

namespace haulout::testing {

class Guards {
 public:
  explicit Guards(sim::Cluster& cluster);

  bool impersonation = true;  // the feature gate ConstrainedImpersonation
  // Whom the policies hold, and which of them are in force.
  std::string held_user = "system:serviceaccount:haulout:agent";
  std::set<std::string> policies{"node", "pods", "own-pods", "slots"};
  // "create pods/eviction": what the node's identity may be used for, and what ServiceAccounts may not do by
  // themselves.
  std::set<std::string> impersonate_on{"list pods",  "watch pods",  "create pods/eviction", "get nodes",
                                       "list nodes", "watch nodes", "patch nodes",          "patch nodes/status"};
  std::set<std::string> denied;

 private:
  using Refusal = std::optional<http::Response>;
  Refusal judge(const sim::Call& call) const;
  Refusal judge_impersonation(const sim::Call& call, const sim::Identity& caller, const std::string& as) const;
  Refusal judge_node(const sim::Call& call, const std::string& node) const;
  Refusal judge_policies(const sim::Call& call, const sim::Identity& caller) const;

  sim::Cluster& cluster_;
};

// A ServiceAccount's token that is bound to a pod on that node; the objects must be there.
sim::Identity bound_to(const sim::Cluster& cluster, const std::string& node, const std::string& pod);

}  // namespace haulout::testing
