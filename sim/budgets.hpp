// Relation between PodDisruptionBudgets and pods: the pods of a budget, and the budgets of a pod. Pure; reads the
// store.
#pragma once

#include <vector>

#include "sim/store.hpp"

namespace haulout::sim {

// pods_of_budget() returns the pods that the budget selects; budgets_of_pod() returns the budgets that select the pod.
// Both results are sorted by name.
std::vector<Object> pods_of_budget(const Store& store, const Json& budget);
std::vector<Object> budgets_of_pod(const Store& store, const Json& pod);

}  // namespace haulout::sim
