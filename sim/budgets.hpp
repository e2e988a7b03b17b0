// PodDisruptionBudgets of the simulated cluster: the pods that each budget selects, and the disruption controller,
// which borrows the world. No I/O; nothing fails.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sim/store.hpp"
#include "sim/world.hpp"

namespace haulout::sim {

// pods_of_budget() returns the pods that the budget selects; budgets_of_pod() returns the budgets that select the pod.
// Both results are sorted by name.
std::vector<Object> pods_of_budget(const Store& store, const Json& budget);
std::vector<Object> budgets_of_pod(const Store& store, const Json& pod);

// Returns the value of a budget's minAvailable or maxUnavailable: an integer, or a percentage of `total`, which is
// always rounded up.
std::int64_t scaled(const Json& value, std::int64_t total);

// Updates the status of every PodDisruptionBudget as the real disruption controller does.
class DisruptionController {
 public:
  explicit DisruptionController(World& world);
  // Computes the status of every budget again, after the usual lag.
  void resync();

 private:
  // The pods that a budget selects, with what the status needs of them. It is kept with each change of a pod, because
  // counting all of them each time would make large budgets slow.
  class Pods {
   public:
    // The controlling owner of at least one of the pods.
    struct Owner {
      Json reference;
      int pods = 0;
    };
    void put(const Object& pod);
    void remove(const std::string& name);
    // Returns null if the budget does not select such a pod.
    Object find(const std::string& name) const;
    std::size_t size() const { return pods_.size(); }
    // The number of pods that are Ready and do not terminate.
    std::int64_t healthy() const { return healthy_; }
    const std::vector<Owner>& owners() const { return owners_; }

   private:
    void count(const Json& pod, int by);

    std::unordered_map<std::string, Object> pods_;  // by name
    std::int64_t healthy_ = 0;
    std::vector<Owner> owners_;  // nearly always one
  };

  void pod_changed(const Change& change);
  // Returns the pods that the budget selects. Searches the store only once; after that, pod_changed() keeps them up to
  // date.
  const Pods& pods_of(const Key& key, const Json& budget);
  void look_later(const Key& budget, Duration delay);
  void sync(const Key& budget);
  // The number of pods that a budget expects, and how many of them must be healthy. expectation() and sum_of_scales()
  // return nullopt if a pod's controller has no scale subresource; *problem is then the message for the budget's
  // status.
  struct Expectation {
    std::int64_t expected = 0;
    std::int64_t desired = 0;
  };
  std::optional<Expectation> expectation(const Json& budget, const Pods& pods, std::string* problem) const;
  std::optional<std::int64_t> sum_of_scales(const Json& budget, const Pods& pods, std::string* problem) const;
  void fail(const Key& budget, const std::string& problem);
  void heal_stale_targets(const std::string& ns);

  World& world_;
  std::unordered_set<Key, HashOfKey> planned_;
  std::unordered_map<Key, Pods, HashOfKey> pods_;  // of each budget that was synced since its selector last changed
};

}  // namespace haulout::sim
