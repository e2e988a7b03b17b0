// PodDisruptionBudgets of the simulated cluster: the pods that each budget selects, and the disruption controller,
// which borrows the world. No I/O; nothing fails.
#pragma once

#include <set>
#include <vector>

#include "sim/store.hpp"
#include "sim/world.hpp"

namespace haulout::sim {

// pods_of_budget() returns the pods that the budget selects; budgets_of_pod() returns the budgets that select the pod.
// Both results are sorted by name.
std::vector<Object> pods_of_budget(const Store& store, const Json& budget);
std::vector<Object> budgets_of_pod(const Store& store, const Json& pod);

// Updates the status of every PodDisruptionBudget as the real disruption controller does.
class DisruptionController {
 public:
  explicit DisruptionController(World& world);
  // Computes the status of every budget again, after the usual lag.
  void resync();

 private:
  void look_later(const Key& budget, Duration delay);
  void sync(const Key& budget);
  // The number of pods that a budget expects, and how many of them must be healthy. expectation() and sum_of_scales()
  // return nullopt if a pod's controller has no scale subresource; *problem is then the message for the budget's
  // status.
  struct Expectation {
    std::int64_t expected = 0;
    std::int64_t desired = 0;
  };
  std::optional<Expectation> expectation(const Json& budget, const std::vector<Object>& pods,
                                         std::string* problem) const;
  std::optional<std::int64_t> sum_of_scales(const Json& budget, const std::vector<Object>& pods,
                                            std::string* problem) const;
  void fail(const Key& budget, const std::string& problem);
  void heal_stale_targets(const std::string& ns);

  World& world_;
  std::set<Key> planned_;
};

}  // namespace haulout::sim
