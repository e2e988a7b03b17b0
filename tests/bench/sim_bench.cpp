// Compares simulated drains of random workloads with longest-first list scheduling of the same pods. There are one
// tier, no budgets and no settle time, and every pod takes its whole grace period. The exit code is 1 if any drain
// takes longer than the promised ratio.
#include <algorithm>
#include <cstdio>

#include "tests/scenario/schedule.hpp"

int main() {
  using haulout::Duration;
  constexpr double promised = 1.02;
  constexpr std::uint64_t workloads = 40;
  bool kept = true;
  std::printf("%-15s %9s %12s %12s\n", "max-concurrent", "workloads", "worst ratio", "mean ratio");
  for (const std::size_t places : {1u, 2u, 5u, 10u, 0u}) {
    double worst = 0, sum = 0;
    for (std::uint64_t seed = 1; seed <= workloads; ++seed) {
      const auto graces = haulout::scenario::random_graces(seed);
      const Duration ideal = haulout::scenario::list_schedule(graces, places);
      const Duration taken = haulout::scenario::simulated_drain(graces, places, seed);
      const double ratio = std::chrono::duration<double>(taken) / std::chrono::duration<double>(ideal);
      worst = std::max(worst, ratio);
      sum += ratio;
    }
    char name[24] = "unlimited";
    if (places != 0) std::snprintf(name, sizeof name, "%zu", places);
    std::printf("%-15s %9llu %12.4f %12.4f\n", name, static_cast<unsigned long long>(workloads), worst,
                sum / static_cast<double>(workloads));
    kept = kept && worst <= promised;
  }
  std::printf("promised: at most %.2f: %s\n", promised, kept ? "kept" : "BROKEN");
  return kept ? 0 : 1;
}
