// One drain of a generated world: world, options, people and faults all follow from the seed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/transport.hpp"
#include "retry/clock.hpp"
#include "tests/worlds/world_generator.hpp"

namespace haulout::scenario {

struct SeededRun {
  std::uint64_t seed = 0;
  unsigned generation = 0;
  std::string setting;  // the options of the drain and what its world has, in one line
  std::string outcome;
  std::vector<std::string> violations;
  std::vector<std::string> trace;
  Duration took{};  // virtual
  std::size_t requests = 0;
  std::size_t faults_struck = 0;
};

// Stands between the drain and the judges, and breaks what the drain does. It is given the sound way.
using Sabotage = std::function<std::unique_ptr<http::Transport>(http::Transport& sound)>;

SeededRun run_seed(std::uint64_t seed, unsigned generation = sim::newest_generation, const Sabotage& sabotage = {});

}  // namespace haulout::scenario
