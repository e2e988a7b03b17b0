// Checks the promises P1 to P5 and P8 to P10, places, budgets, guards and order in generated worlds, one world per
// seed. The generations are those of tests/worlds/world_generator.hpp.
//   HAULOUT_SEEDS=N HAULOUT_FIRST_SEED=K   run N seeds from K on (default: 200 from 1)
//   HAULOUT_SEED=K                         run seed K alone, with its trace
//   HAULOUT_GENERATION=G                   use worlds of generation G (default: the newest)
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "tests/scenario/seeded_run.hpp"
#include "tests/support/dimensions.hpp"

namespace haulout::scenario {
namespace {

struct Found {
  unsigned generation;
  std::vector<std::uint64_t> seeds;
};
// Each of these seeds once found a bug.
const std::vector<Found> found_something = {
    {1, {1441, 2040, 2637, 2716, 2926, 2928, 2930, 3012, 5121, 5334, 5335, 5481, 5693, 5897, 6392, 6446}},
    {3, {27831, 28481}},
    {4, {2999}},
    {5, {1533, 2347}},
    {6, {20914, 43030, 84105, 86820, 89365}},
    {7, {42,    250,   1196,  1248,  2381,  2626,  2761,  2791,  2816,  2997,  3263,  3517,  3784,
         3940,  4184,  4778,  4865,  5783,  6179,  6396,  6748,  7428,  9187,  11060, 13437, 14714,
         18638, 19953, 19991, 24645, 25749, 26374, 26581, 27015, 30491, 35188, 37428, 39326, 42999,
         46933, 57132, 63558, 64987, 65719, 66854, 78771, 81699, 83987, 89521, 96078}},
    {8, {1,    30,   172,   193,   263,   515,   719,   966,   1188,  1295,  1314,  1760,  3573, 7529,
         9233, 9953, 10696, 17359, 23791, 27281, 27593, 47798, 58043, 64005, 77076, 78542, 99602}},
    {11, {553, 910, 3931, 5955}},
    {12, {1391,   8748,   10938,  12982,  13494,  15308,  15962,   30979,   33396,   35431,  37995,  38579,
          49018,  51747,  52239,  53011,  54636,  58536,  59400,   60932,   61059,   62542,  66827,  74278,
          76265,  82488,  82796,  92551,  200632, 200758, 300354,  300397,  410472,  417095, 500680, 502284,
          510895, 513753, 524189, 604182, 609290, 612371, 702637,  705753,  708148,  708832, 719076, 725855,
          726154, 727576, 728807, 803244, 900357, 900544, 1016753, 1026310, 1032018, 1035052}}};

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? std::strtoull(value, nullptr, 10) : otherwise;
}

std::string replay(const SeededRun& run) {
  return fmt::format("./dev sim --generation {} --seed {}", run.generation, run.seed);
}

void expect_no_violation(const SeededRun& run) {
  if (run.violations.empty()) return;
  std::string text;
  for (const std::string& violation : run.violations) text += "\n  " + violation;
  ADD_FAILURE() << "seed " << run.seed << " (" << run.setting << ") ended " << run.outcome << text
                << "\n  replay: " << replay(run);
}

void expect_same_course(const SeededRun& run) {
  const SeededRun again = run_seed(run.seed, run.generation);
  if (again.trace == run.trace) return;
  std::size_t line = 0;
  while (line < std::min(run.trace.size(), again.trace.size()) && run.trace[line] == again.trace[line]) ++line;
  ADD_FAILURE() << "seed " << run.seed << " went two ways from line " << line << "\n  replay: " << replay(run);
}

TEST(Seeds, EveryPromiseHoldsInEveryWorld) {
  const std::uint64_t single = from_environment("HAULOUT_SEED", 0);
  const std::uint64_t first = single ? single : from_environment("HAULOUT_FIRST_SEED", 1);
  const auto generation = static_cast<unsigned>(from_environment("HAULOUT_GENERATION", sim::newest_generation));
  const std::uint64_t count = single ? 1 : from_environment("HAULOUT_SEEDS", 200);
  double hours = 0;
  std::size_t requests = 0, faults = 0;
  std::map<std::string, std::size_t> outcomes;
  testing::Dimensions dimensions;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const SeededRun run = run_seed(seed, generation);
    if (single) {
      std::cout << run.setting << '\n';
      for (const std::string& line : run.trace) std::cout << line << '\n';
    }
    expect_no_violation(run);
    if ((seed - first) % 20 == 0) expect_same_course(run);
    hours += std::chrono::duration<double, std::ratio<3600>>(run.took).count();
    requests += run.requests;
    faults += run.faults_struck;
    ++outcomes[run.outcome];
    dimensions.add(run.setting);
  }
  std::string ended;
  for (const auto& [outcome, times] : outcomes) ended += fmt::format(", {} {}", times, outcome);
  std::cout << fmt::format("{} seeds from {}: {:.1f} virtual hours, {} requests, {} faults struck{}{}\n", count, first,
                           hours, requests, faults, ended, dimensions.text());
  // Checks that the generator still produces varied worlds. Otherwise the promises would hold only because nothing
  // happens.
  if (count < 100) return;
  EXPECT_GE(outcomes["drained"] * 2, count);
  EXPECT_GT(outcomes["blocked"], 0u);
  EXPECT_GT(outcomes["refused"], 0u);
  EXPECT_GT(faults, count);
}

TEST(Seeds, ThoseThatFoundSomethingAreAlwaysPlayed) {
  for (const auto& [generation, seeds] : found_something)
    for (const std::uint64_t seed : seeds) expect_no_violation(run_seed(seed, generation));
}

}  // namespace
}  // namespace haulout::scenario
