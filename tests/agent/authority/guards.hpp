// Simulates what restricts a credential to its own Node on a real API server (1.36): constrained impersonation and the
// four admission policies. The simulated cluster's Node authorizer works beside them. Each guard can be switched off.
// The refusals are those of the real server. Borrows the cluster. No I/O.
#pragma once

#include <set>
#include <string>

#include "tests/support/test_cluster.hpp"

namespace haulout::testing {

class Guards {
 public:
  explicit Guards(sim::TestCluster& cluster);

  bool impersonation = true;  // the feature gate ConstrainedImpersonation
  // The user that the policies restrict, and the policies that are in force.
  std::string held_user = "system:serviceaccount:haulout:agent";
  std::set<std::string> policies{"node", "pods", "own-pods", "slots"};
  // Requests such as "create pods/eviction". `impersonate_on` are those that the ServiceAccount may send with the
  // node's identity. `denied` are those that ServiceAccounts may not send themselves.
  std::set<std::string> impersonate_on{"list pods",  "watch pods",  "create pods/eviction", "get nodes",
                                       "list nodes", "watch nodes", "patch nodes",          "patch nodes/status"};
  std::set<std::string> denied;

 private:
  using Refusal = std::optional<http::Response>;
  Refusal judge(const sim::Call& call) const;
  Refusal judge_impersonation(const sim::Call& call, const sim::Identity& caller, const std::string& as) const;
  Refusal judge_node(const sim::Call& call, const std::string& node) const;
  Refusal judge_policies(const sim::Call& call, const sim::Identity& caller) const;

  sim::TestCluster& cluster_;
};

// Returns the identity of a ServiceAccount token that is bound to this pod on this node. Both objects must exist.
sim::Identity bound_to(const sim::TestCluster& cluster, const std::string& node, const std::string& pod);

}  // namespace haulout::testing
