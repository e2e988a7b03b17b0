// The budgets that a drain needs to know: those that select one of its pods. For budgets, pods of one namespace with
// the same labels are the same. Pure bookkeeping, no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "k8s/objects.hpp"

namespace haulout::drain {

class BudgetScope {
 public:
  // Adds a pod, unless one with the same labels is in the scope.
  void add(const k8s::Pod& pod) { size_ += of_[pod.ns].try_emplace(pod.labels, size_).second ? 1 : 0; }
  // Returns true if the budget selects one of the pods.
  bool has(const k8s::PodDisruptionBudget& budget) const;
  // The number of different pods.
  std::size_t size() const { return size_; }

  // Records that all budgets are known that select one of the `size` pods that were added first. Before the first call
  // the budgets of all pods count as known.
  void known_for(std::size_t size) { known_ = size; }
  bool is_complete() const { return size_ <= known_; }
  // Returns true if all budgets that select the pod are known.
  bool knows(const k8s::Pod& pod) const;

 private:
  // The pods by namespace and labels, each with the number of those that were added before it.
  std::map<std::string, std::map<std::map<std::string, std::string>, std::size_t>> of_;
  std::size_t size_ = 0;
  std::size_t known_ = SIZE_MAX;
};

}  // namespace haulout::drain
