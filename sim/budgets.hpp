// Which pods a PodDisruptionBudget protects, and which budgets a pod has. Pure readers of the store.
#pragma once

#include <vector>

#include "sim/store.hpp"

namespace haulout::sim {

// By name.
std::vector<Object> pods_of_budget(const Store& store, const Json& budget);
std::vector<Object> budgets_of_pod(const Store& store, const Json& pod);

}  // namespace haulout::sim
