// One drain of a generated world. The seed determines the world, the options, the actions of people and the faults.
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
  std::string setting;  // the drain's options and the features of its world, in one line
  std::string outcome;
  std::vector<std::string> violations;
  std::vector<std::string> trace;
  Duration took{};  // virtual time
  std::size_t requests = 0;
  std::size_t faults_struck = 0;
};

// Creates a transport between the drain and the checks that breaks the drain's behaviour. `sound` is the unbroken
// transport. The result borrows it.
using Sabotage = std::function<std::unique_ptr<http::Transport>(http::Transport& sound)>;

SeededRun run_seed(std::uint64_t seed, unsigned generation = sim::newest_generation, const Sabotage& sabotage = {});

}  // namespace haulout::scenario
