// Which pods are on which nodes, and on which node a pod fits. The rules are those of kube-scheduler's filters:
// schedulable and Ready nodes, taints, nodeSelector, required node affinity, requests against allocatable resources,
// and required pod anti-affinity in both directions. Of several nodes it takes the one with the fewest pods. Pure.
//
// Rules that not_weighed() names are ignored or approximated. A real scheduler may refuse a pod that fits here.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "placement/amounts.hpp"
#include "placement/objects.hpp"

namespace haulout::placement {

struct Place {
  std::string node{};               // empty if no node fits; only then are the other members set
  std::string message{};            // why no node fits, as kube-scheduler words it
  std::set<std::string> plugins{};  // the scheduler's plugins that refuse nodes
  std::string preempts_on{};        // a node where it fits if pods of lower priority are preempted; empty if none
  bool vague = false;               // it may fit, since a rule that refuses was treated as stricter than it is
};

// A set of nodes: one entry per node, in the order given to Room; true if the node is in the set.
using Sites = std::vector<bool>;

class Room {
 public:
  // What a node without stated allocatable resources has. `nothing` is for a kubelet that has not reported yet.
  // `no_end` is for a simulated cluster without sizes.
  enum class Unstated { nothing, no_end };

  Room(const std::vector<Object>& nodes, Unstated unstated);

  // Forbids all further pods on the node, whatever they tolerate.
  void close(const std::string& node);
  // Puts the pod on the node. It uses its requests, unless it has finished. Ignores an unknown node.
  void put(const Object& pod, const std::string& node);
  // Removes the pod from the node. Both must be the same as in put().
  void take(const Object& pod, const std::string& node);
  // Replaces a Node that has changed, and keeps the pods on it. Ignores an unknown node.
  void renew(const Object& node);
  // Returns the node for the pod and changes nothing. Returns `preferred` if the pod fits there.
  Place find(const Json& pod, const std::string& preferred = {}) const;
  // Returns the nodes that could take the pod, also by preempting pods of lower priority.
  Sites candidates(const Json& pod) const;
  // The pod will be on one of `sites`, but it is not known on which. Reserves its requests on each of them. Only
  // find_for_sure() considers reservations.
  void reserve(const Json& pod, const Sites& sites);
  // Like find(), but the pod fits on the node wherever the reserved pods go. Empty if there is no such node.
  std::string find_for_sure(const Json& pod) const;
  // Returns the nodes that accept the pod, whatever other pods are on them.
  Sites admitting(const Json& pod) const;
  // Returns the index of a node in Sites, or nothing if the node is unknown.
  std::optional<std::size_t> site_of(const std::string& node) const;
  // Returns the free amount of each resource on all these nodes together. Includes what the pod may preempt.
  Amounts free_for(const Json& pod, const Sites& sites) const;
  // Returns the pod's largest request as a fraction of what the largest node has of that resource; 1 if no node has it.
  double share(const Json& pod) const;

 private:
  struct Occupant {
    Object pod;
    Amounts requests;
    std::int64_t priority = 0;
  };
  struct Site {
    Object node;
    Amounts limits;
    bool endless = false;
    bool closed = false;
    std::size_t pods = 0;
    Amounts used;
    Amounts reserved;
    std::vector<Occupant> occupants;
  };
  using Domains = std::set<std::pair<std::string, std::string>>;  // label and value of topology domains
  struct Wish {
    const Json& pod;
    Amounts wanted;
    Domains apart;   // with pods that its own anti-affinity selects
    Domains others;  // with pods whose anti-affinity selects it
    bool vague = false;
  };
  struct Refusal {
    std::string_view plugin;  // empty if the pod fits
    std::vector<std::string> reasons;
  };

  void set_node(Site& site, const Object& node) const;
  static void count_used(Site& site);

  enum class Counted { standing, without_lower, reserved_too };  // without_lower: without the pods of lower priority

  // Pods of lower priority on `spared` do not count; `spared` may be null.
  Wish wish_of(const Json& pod, const Site* spared) const;
  static Amounts used(const Json& pod, const Site& site, Counted counted);
  std::vector<std::string> missing(const Wish& wish, const Site& site, Counted counted) const;
  static Refusal refused_by_node(const Json& pod, const Site& site);
  Refusal refusal(const Wish& wish, const Site& site, Counted counted) const;
  bool by_preemption(const Json& pod, const Site& site, std::string_view plugin) const;

  Unstated unstated_;
  std::vector<Site> sites_;
  std::map<std::string, std::size_t> by_name_;
  std::vector<std::pair<Object, std::size_t>> apart_;  // pods with anti-affinity, and the index of their site
};

// tolerates_node(): whether the pod tolerates all taints of the node that keep pods away. wants_node(): whether its
// selector and node affinity match the node.
bool tolerates_node(const Json& pod, const Json& node);
bool wants_node(const Json& pod, const Json& node);
// Returns whether a toleration has an operator other than Equal and Exists, which compares numbers. The filters here
// treat it as Equal.
bool compares_taints(const Json& pod);

// Returns whether the anti-affinity of one pod selects the other.
bool keep_apart(const Json& one, const Json& other);

// Returns whether its anti-affinity depends on namespace labels or label keys. The filters here then apply it to all
// namespaces and ignore the label keys.
bool far_reaching(const Json& pod);

// Names the rules that decide about the pod's node but are not weighed here: "volumes", "topology spread", …
std::vector<std::string> not_weighed(const Json& pod);

}  // namespace haulout::placement
