// The interface of random numbers, so that the same seed repeats a run of a test. The distributions are implemented
// here, because those of the standard library differ between implementations. Never fails; no coroutines. Not for
// secrets. One thread.
#pragma once

#include <cstdint>
#include <random>

#include "retry/clock.hpp"

namespace haulout {

class Rng {
 public:
  virtual ~Rng() = default;
  // Returns a number that is uniform over 64 bits.
  virtual std::uint64_t next() = 0;

  // Returns a number that is uniform in [low, high]. Requires low <= high.
  std::uint64_t between(std::uint64_t low, std::uint64_t high);
  // Returns a duration that is uniform in [low, high], or `low` if high <= low.
  Duration between(Duration low, Duration high);
  // Returns true with probability percent/100.
  bool chance(unsigned percent) { return between(std::uint64_t{0}, std::uint64_t{99}) < percent; }
};

// The sequence of random numbers that a seed determines. The program takes the seed from the system, a test chooses it.
class SeededRng final : public Rng {
 public:
  explicit SeededRng(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace haulout
