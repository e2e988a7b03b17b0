// Compares the duration of a simulated drain with longest-first list scheduling of the same pods. There is one tier, no
// budget and no settle time, and each pod needs its whole grace period to terminate.
#pragma once

#include <cstdint>
#include <vector>

#include "retry/clock.hpp"

namespace haulout::scenario {

// Returns the grace periods, in seconds, of a random workload on one node.
std::vector<std::int64_t> random_graces(std::uint64_t seed);
// Returns how long the pods take if they are evicted longest first, each as soon as one of `places` places is free.
// `places` 0 means no limit. The pods are given by their grace periods in seconds.
Duration list_schedule(std::vector<std::int64_t> graces, std::size_t places);
// Returns the time from the acknowledged cordon to the report. Throws if the node was not drained.
Duration simulated_drain(const std::vector<std::int64_t>& graces, std::size_t places, std::uint64_t seed);

}  // namespace haulout::scenario
