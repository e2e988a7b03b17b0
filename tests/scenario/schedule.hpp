// How long a simulated drain takes, against longest-first list scheduling of the same pods: one tier, no budgets, each
// pod takes its whole grace period to end, no settle time.
#pragma once

#include <cstdint>
#include <vector>

#include "retry/clock.hpp"

namespace haulout::scenario {

// Grace periods of a random workload of pods on one node.
std::vector<std::int64_t> random_graces(std::uint64_t seed);
// `places` 0: unlimited.
Duration list_schedule(std::vector<std::int64_t> graces, std::size_t places);
// From the acknowledged cordon to the report; throws if the node was not drained.
Duration simulated_drain(const std::vector<std::int64_t>& graces, std::size_t places, std::uint64_t seed);

}  // namespace haulout::scenario
