// Records which pods are on which nodes, and finds a node on which a pod fits. The rules are those of kube-scheduler's
// filters: schedulable and Ready nodes, taints, nodeSelector, required node affinity, requests against allocatable
// resources, the node affinity of the pod's volumes if the caller knows them, and required pod anti-affinity in both
// directions. Of several nodes it takes the one with the fewest pods. Pure.
//
// Rules that not_weighed() names are ignored or approximated. kube-scheduler may refuse a pod that fits here.
//
// Also computes amounts of resources: the requests of pods and the limits of nodes. Parses the quantities of the API.
// Sums are clamped instead of overflowing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "placement/objects.hpp"

namespace haulout::placement {

// Parses a quantity: "500m", "2", "1.5", "128Mi", "1e3".
// Returns the quantity in thousandths of its unit, rounded up as the API does. Returns nullopt if it is not a quantity
// or if the result exceeds ±9.2e18.
std::optional<std::int64_t> thousandths(std::string_view quantity);

using Amounts = std::map<std::string, std::int64_t>;  // in thousandths, by the name of the resource

void add(Amounts& to, const Amounts& more);
// Returns 0 for a resource that is not in `of`.
std::int64_t amount(const Amounts& of, const std::string& resource);

// Returns the node's status.allocatable, or its status.capacity if that is missing. Leaves out amounts that cannot be
// parsed.
Amounts limits_of(const Json& node);

// Returns the requests of the pod: for each resource the sum over the containers that run at the same time, or the
// request of an init container if that is more. Requests of the pod as a whole (spec.resources) replace that sum.
// Overhead is added. The amount of "pods" is one pod, which is 1000. Resources that a ResourceClaim serves are left out
// (claimed_resources()). An amount that cannot be parsed or is too large counts as more than any node has.
Amounts requests_of(const Json& pod);

// The result of Room::find().
struct Place {
  std::string node{};               // empty if no node fits; only then are the other members set
  std::string message{};            // why no node fits, in the words of kube-scheduler
  std::set<std::string> plugins{};  // the scheduler's plugins that refuse nodes
  std::string preempts_on{};        // a node where it fits if pods of lower priority are preempted; empty if none
  bool vague = false;               // it may fit all the same: a rule that excludes nodes was applied too strictly
};

// A set of nodes: one entry per node, in the order given to Room; true if the node is in the set.
using Sites = std::vector<bool>;

class Room {
 public:
  // The resources of a node whose status has no allocatable resources. `nothing`: none, because its kubelet has not
  // reported yet. `no_end`: unlimited, for a simulated cluster without sizes.
  enum class Unstated { nothing, no_end };

  Room(const std::vector<Object>& nodes, Unstated unstated);

  // Excludes the node for all further pods, whatever they tolerate, until it is opened again.
  void close(const std::string& node);
  void open(const std::string& node);
  // Puts the pod on the node. The pod uses up its requests there, unless it has finished. Ignores an unknown node.
  void put(const Object& pod, const std::string& node);
  // Removes the pod from the node. Both must be the same as in put().
  void take(const Object& pod, const std::string& node);
  // Replaces a Node that has changed, and keeps the pods on it. Ignores an unknown node.
  void renew(const Object& node);
  // Replaces a pod on the node by a later state that needs the same: the old state is not kept in memory. `before` must
  // be the same as in put().
  void renew(const Object& before, const Object& after, const std::string& node);
  // Returns a node on which the pod fits: `preferred` if it fits there. Does not put the pod on the node. `volumes` are
  // the PersistentVolumes of the pod, as far as they are known: the pod fits only on nodes that can reach all of them.
  Place find(const Json& pod, const std::string& preferred = {}, const std::vector<Object>& volumes = {}) const;
  // Returns the nodes that could take the pod, also by preempting pods of lower priority.
  Sites candidates(const Json& pod) const;
  // The pod will be on one of `sites`, but it is not known on which. Reserves its requests on each of them. Only
  // find_for_sure() considers reservations.
  void reserve(const Json& pod, const Sites& sites);
  // Returns a node on which the pod fits whichever of their possible nodes the reserved pods are on. Empty if there is
  // no such node.
  std::string find_for_sure(const Json& pod) const;
  // Returns the nodes that accept the pod, whatever other pods are on them.
  Sites admitting(const Json& pod) const;
  // Returns the index of a node in Sites, or nullopt if the node is unknown.
  std::optional<std::size_t> site_of(const std::string& node) const;
  // Returns the free amount of each resource on all these nodes together. If the pod may preempt pods of lower
  // priority, what those use counts as free.
  Amounts free_for(const Json& pod, const Sites& sites) const;
  // Returns the largest of the pod's requests, each as a fraction of the largest amount of that resource on any node. A
  // resource that no node has counts as 1.
  double share(const Json& pod) const;

 private:
  struct Occupant {
    Object pod;
    Amounts requests;
    std::int64_t priority = 0;
  };
  // A node with what it offers and the pods that are counted on it.
  struct Site {
    Object node;
    Amounts limits;
    bool endless = false;
    bool closed = false;
    std::size_t pods = 0;
    Amounts used;
    bool clamped = false;  // an amount in `used` is not the sum, because the sum is too large
    Amounts reserved;
    std::vector<Occupant> occupants;
  };
  using Domains = std::set<std::pair<std::string, std::string>>;  // label and value of topology domains
  struct Wish {
    const Json& pod;
    Amounts wanted;
    Domains apart;   // domains with pods that its own anti-affinity selects
    Domains others;  // domains with pods whose anti-affinity selects it
    bool vague = false;
    const std::vector<Object>* volumes = nullptr;  // nullptr: none is known
  };
  struct Refusal {
    std::string_view plugin;  // empty if the pod fits
    std::vector<std::string> reasons;
  };

  void set_node(Site& site, const Object& node) const;
  static void count_used(Site& site);
  static void use(Site& site, const Amounts& requests);

  enum class Counted { standing, without_lower, reserved_too };  // without_lower: without the pods of lower priority

  // Pods of lower priority on `spared` do not count; `spared` may be null.
  Wish wish_of(const Json& pod, const Site* spared) const;
  static Amounts used(const Json& pod, const Site& site, Counted counted);
  std::vector<std::string> missing(const Wish& wish, const Site& site, Counted counted) const;
  static Refusal refused_by_node(const Json& pod, const Site& site);
  Refusal refusal(const Wish& wish, const Site& site, Counted counted) const;
  bool by_preemption(const Wish& wish, const Site& site, std::string_view plugin) const;

  void count(Site& site, std::size_t pods);

  Unstated unstated_;
  std::vector<Site> sites_;
  // Number of pods and index of each site. find() takes the first one that accepts the pod, without a look at the
  // others.
  std::set<std::pair<std::size_t, std::size_t>> fewest_;
  std::map<std::string, std::size_t> by_name_;
  std::vector<std::pair<Object, std::size_t>> apart_;  // pods with anti-affinity, and the index of their site
};

// tolerates_node() returns true if the pod tolerates all taints of the node, except those with PreferNoSchedule.
// wants_node() returns true if the pod's selector and required node affinity match the node.
bool tolerates_node(const Json& pod, const Json& node);
bool wants_node(const Json& pod, const Json& node);
// Returns true if the node affinity of the PersistentVolume matches the node, or if it has none.
bool reaches_node(const Json& volume, const Json& node);
// Returns true if a toleration has an operator that compares numbers (other than Equal and Exists). The filters here
// treat such an operator as Equal.
bool compares_taints(const Json& pod);

// Returns true if the anti-affinity of one of the pods selects the other.
bool keep_apart(const Json& one, const Json& other);

// Returns true if the pod's anti-affinity depends on namespace labels or label keys. The filters here then apply it to
// all namespaces and ignore the label keys.
bool far_reaching(const Json& pod);

// Returns the names of the rules that restrict the pod's nodes but are ignored here: "volumes", "topology spread", …
// `knows_volumes`: Room::find() gets the PersistentVolumes of all claims of the pod.
std::vector<std::string> not_weighed(const Json& pod, bool knows_volumes = false);

}  // namespace haulout::placement
