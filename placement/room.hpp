// What stands where, and where a pod finds room, decided as kube-scheduler's filters do: schedulable and Ready nodes,
// taints, nodeSelector and required node affinity, requests against what is allocatable, required pod anti-affinity
// (both ways). Of several nodes the one with the fewest pods. Pure.
//
// What is not weighed is what not_weighed() names: where such a pod finds room here, a real scheduler may say no.
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
  std::string node{};               // empty: none fits
  std::string message{};            // then: why, in kube-scheduler's words
  std::set<std::string> plugins{};  // then: whose filters say no
  std::string preempts_on{};        // then: a node where it would fit in place of pods of lower priority; empty: none
  bool vague = false;               // then: it may fit, since something that says no was taken for stricter than it is
};

// Some of the nodes, in the order in which they were given: true for those that belong to them.
using Sites = std::vector<bool>;

class Room {
 public:
  // What a node has that states nothing allocatable: a kubelet that has not reported yet, or a cluster that is
  // simulated without sizes.
  enum class Unstated { nothing, no_end };

  Room(const std::vector<Object>& nodes, Unstated unstated);

  // From now on nothing may go there, whatever it tolerates.
  void close(const std::string& node);
  // The pod stands there: it takes its requests, if it has not finished. A node that is not known is ignored.
  void put(const Object& pod, const std::string& node);
  // It stands there no longer. The same object and node as it was put with.
  void take(const Object& pod, const std::string& node);
  // The Node has changed; what stands on it stands. One that is not known is ignored.
  void renew(const Object& node);
  // Where it would go; changes nothing. `preferred` wins where it fits.
  Place find(const Json& pod, const std::string& preferred = {}) const;
  // The nodes that could have it, be it in place of pods of lower priority.
  Sites candidates(const Json& pod) const;
  // It will stand on one of these, and nobody knows on which: each keeps its requests free. Nothing but
  // find_for_sure() asks about that.
  void reserve(const Json& pod, const Sites& sites);
  // As find(), but where it has room wherever the others go that were reserved for; empty: there is none.
  std::string find_for_sure(const Json& pod) const;
  // The nodes that take it, whatever stands on them.
  Sites admitting(const Json& pod) const;
  // The place of a node among the Sites; one that is not known has none.
  std::optional<std::size_t> site_of(const std::string& node) const;
  // What is free of each resource on all of these together; what it may preempt is.
  Amounts free_for(const Json& pod, const Sites& sites) const;
  // The largest share of a node that it takes, of the resource that it takes most of.
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
  using Domains = std::set<std::pair<std::string, std::string>>;  // label and value
  struct Wish {
    const Json& pod;
    Amounts wanted;
    Domains apart;   // from those that it keeps away from itself
    Domains others;  // of those that keep it away
    bool vague = false;
  };
  struct Refusal {
    std::string_view plugin;  // empty: it fits
    std::vector<std::string> reasons;
  };

  void set_node(Site& site, const Object& node) const;
  static void count_used(Site& site);

  enum class Counted { standing, without_lower, reserved_too };  // without_lower: less the pods of lower priority

  // `spared`: the site whose pods of lower priority do not count.
  Wish wish_of(const Json& pod, const Site* spared) const;
  static Amounts used(const Json& pod, const Site& site, Counted counted);
  std::vector<std::string> missing(const Wish& wish, const Site& site, Counted counted) const;
  static Refusal refused_by_node(const Json& pod, const Site& site);
  Refusal refusal(const Wish& wish, const Site& site, Counted counted) const;
  bool by_preemption(const Json& pod, const Site& site, std::string_view plugin) const;

  Unstated unstated_;
  std::vector<Site> sites_;
  std::map<std::string, std::size_t> by_name_;
  std::vector<std::pair<Object, std::size_t>> apart_;  // pods with anti-affinity, and their site
};

// Whether it tolerates every taint of the node that keeps pods away, and whether selector and affinity want the node.
bool tolerates_node(const Json& pod, const Json& node);
bool wants_node(const Json& pod, const Json& node);
// Some of its tolerations compare numbers; they are taken for none.
bool compares_taints(const Json& pod);

// One of them has anti-affinity that is about the other.
bool keep_apart(const Json& one, const Json& other);

// Its anti-affinity takes more than labels and namespaces to know whom it is about; it is taken for everybody.
bool far_reaching(const Json& pod);

// What decides about the pod's place and is not weighed: "volumes", "topology spread", …
std::vector<std::string> not_weighed(const Json& pod);

}  // namespace haulout::placement
