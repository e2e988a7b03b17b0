// Promises P1 to P3, P5 to P8, P10, P11, budgets and slots in random fleets, each generated from one seed.
//   HAULOUT_SEEDS=N HAULOUT_FIRST_SEED=K   N seeds, beginning with K (20 from 1)
//   HAULOUT_SEED=K                         only seed K, with its trace
//   HAULOUT_GENERATION=G                   fleets of generation G (the newest)
#include <fmt/format.h>

#include <cstdlib>
#include <iostream>

#include "tests/fleet/seeded_fleet.hpp"
#include "tests/support/dimensions.hpp"

namespace haulout::fleet {
namespace {

struct Found {
  unsigned generation;
  std::vector<std::uint64_t> seeds;
};
// Each of these seeds has once found a bug, or finds a bug that was inserted on purpose.
const std::vector<Found> found_something = {{1, {26, 37, 83, 10810, 12177, 14139, 17423, 18882, 21061, 26347, 27089}},
                                            {3, {5903, 6301, 7487, 10286, 11400, 11693, 12160, 16956, 17409, 17912}},
                                            {4, {31, 79, 183, 199, 3915, 8828}},
                                            {5, {120, 155, 185}},
                                            {12, {200205, 200270, 200641, 200653, 201040, 201231, 201302, 201545}}};

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? std::strtoull(value, nullptr, 10) : otherwise;
}

void expect_no_violation(const SeededOutcome& run, unsigned generation) {
  if (run.violations.empty()) return;
  std::string text;
  for (const std::string& violation : run.violations) text += "\n  " + violation;
  ADD_FAILURE() << "fleet seed " << run.seed << " (" << run.setting << ")" << text
                << "\n  replay: ./dev sim --fleet --generation " << generation << " --seed " << run.seed;
}

void expect_same_course(const SeededOutcome& run, unsigned generation) {
  const SeededOutcome again = play_seed(run.seed, false, generation);
  if (again.trace == run.trace) return;
  std::size_t line = 0;
  while (line < std::min(run.trace.size(), again.trace.size()) && run.trace[line] == again.trace[line]) ++line;
  const auto at = [line](const std::vector<std::string>& trace) {
    return line < trace.size() ? trace[line] : std::string("the end");
  };
  ADD_FAILURE() << "fleet seed " << run.seed << " went two ways from line " << line << ":\n  " << at(run.trace)
                << "\n  " << at(again.trace);
}

TEST(FleetSeeds, EveryPromiseHoldsInEveryFleet) {
  const std::uint64_t single = from_environment("HAULOUT_SEED", 0);
  const std::uint64_t first = single ? single : from_environment("HAULOUT_FIRST_SEED", 1);
  const std::uint64_t count = single ? 1 : from_environment("HAULOUT_SEEDS", 20);
  const auto generation = static_cast<unsigned>(from_environment("HAULOUT_GENERATION", newest_fleet_generation));
  double hours = 0;
  SeededOutcome all;
  testing::Dimensions dimensions;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const SeededOutcome run = play_seed(seed, single != 0, generation);
    if (single) {
      std::cout << run.setting << '\n';
      for (const std::string& line : run.trace) std::cout << line << '\n';
    }
    expect_no_violation(run, generation);
    if ((seed - first) % 20 == 0 && !single) expect_same_course(run, generation);
    hours += std::chrono::duration<double, std::ratio<3600>>(run.took).count();
    dimensions.add(run.setting);
    all.requests += run.requests;
    all.faults_struck += run.faults_struck;
    all.reboots += run.reboots;
    all.evictions += run.evictions;
    all.degraded += run.degraded;
    all.updated += run.updated;
  }
  std::cout << fmt::format(
      "{} fleets from seed {}: {:.1f} virtual hours, {} requests, {} faults struck, {} reboots, {} evictions; at rest "
      "before repair {} nodes well, {} degraded{}\n",
      count, first, hours, all.requests, all.faults_struck, all.reboots, all.evictions, all.updated, all.degraded,
      dimensions.text());
  // Fails if the generator produces too little activity: promises that were hardly tested would seem to hold.
  if (count < 30) return;
  EXPECT_GE(all.updated, count);
  EXPECT_GT(all.degraded, 0u);
  EXPECT_GE(all.reboots, count);
  EXPECT_GE(all.evictions, count);
  EXPECT_GT(all.faults_struck, count);
}

TEST(FleetSeeds, ThoseThatFoundSomethingAreAlwaysPlayed) {
  for (const auto& [generation, seeds] : found_something)
    for (const std::uint64_t seed : seeds) expect_no_violation(play_seed(seed, false, generation), generation);
}

}  // namespace
}  // namespace haulout::fleet
