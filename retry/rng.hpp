// Randomness as a dependency, so that a seed replays a run. The distributions are our own because those of the standard
// library differ between implementations. Neither suspends nor fails.
#pragma once

#include <cstdint>
#include <random>

#include "retry/clock.hpp"

namespace haulout {

class Rng {
 public:
  virtual ~Rng() = default;
  virtual std::uint64_t next() = 0;

  // Uniform in [low, high], both included; low <= high.
  std::uint64_t between(std::uint64_t low, std::uint64_t high);
  // Uniform in [low, high].
  Duration between(Duration low, Duration high);
  // True with probability percent/100.
  bool chance(unsigned percent) { return between(std::uint64_t{0}, std::uint64_t{99}) < percent; }
};

class SeededRng final : public Rng {
 public:
  explicit SeededRng(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace haulout
