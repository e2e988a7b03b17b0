// The simulated disruption controller: computes the status of every PodDisruptionBudget as the real controller does. No
// I/O.
#pragma once

#include <set>

#include "sim/world.hpp"

namespace haulout::sim {

class DisruptionController {
 public:
  explicit DisruptionController(World& world);
  void resync();

 private:
  void look_later(const Key& budget, Duration delay);
  void sync(const Key& budget);
  // What a budget expects: the number of pods, and how many of them must be healthy. expectation() and sum_of_scales()
  // return nullopt if a pod's controller has no scale; *problem then says why.
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
