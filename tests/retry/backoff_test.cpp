#include "retry/backoff.hpp"

#include <gtest/gtest.h>

namespace haulout {
namespace {
using namespace std::chrono_literals;

TEST(Backoff, GrowsToTheCapAndNeverReachesZero) {
  SeededRng rng(1);
  Backoff backoff({100ms, 2.0, 1s, BackoffOptions::Jitter::full});
  for (int attempt = 0; attempt < 200; ++attempt) {
    const auto ceiling = std::min<Duration>(1s, 100ms * (1 << std::min(attempt, 10)));
    const auto delay = backoff.next(rng);
    EXPECT_GE(delay, Backoff::minimum);
    EXPECT_LE(delay, ceiling) << "attempt " << attempt;
  }
}

// The waits double: 0.2, 0.4, 0.8, 1.6, 3.2, 6.4 s, then the cap. They would be squared if the base were multiplied by
// itself.
TEST(Backoff, EachWaitIsTwiceTheOneBefore) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SeededRng rng(seed);
    BackoffOptions options;
    options.jitter = BackoffOptions::Jitter::equal;
    Backoff backoff(options);
    Duration ceiling = 200ms;
    for (int attempt = 0; attempt < 10; ++attempt, ceiling = std::min<Duration>(10s, ceiling * 2)) {
      const Duration delay = backoff.next(rng);
      EXPECT_GE(delay, ceiling / 2) << "attempt " << attempt;
      EXPECT_LE(delay, ceiling) << "attempt " << attempt;
    }
  }
}

TEST(Backoff, EqualJitterKeepsHalf) {
  SeededRng rng(2);
  Backoff backoff({5s, 1.5, 30s, BackoffOptions::Jitter::equal});
  const auto first = backoff.next(rng);
  EXPECT_GE(first, 2500ms);
  EXPECT_LE(first, 5s);
}

TEST(Backoff, NeverComesBackBeforeRetryAfter) {
  SeededRng rng(3);
  for (int i = 0; i < 100; ++i) {
    Backoff backoff({});
    const auto delay = backoff.next(rng, 8000ms);
    EXPECT_GE(delay, 8s);
    EXPECT_LE(delay, 9600ms);
  }
}

TEST(Backoff, NonsenseRetryAfterIsCut) {
  SeededRng rng(4);
  Backoff backoff({});
  EXPECT_LE(backoff.next(rng, std::chrono::hours(24 * 365)), Backoff::longest_retry_after * 6 / 5);
}

TEST(Backoff, ResetStartsAgain) {
  SeededRng rng(5);
  Backoff backoff({100ms, 2.0, 10s, BackoffOptions::Jitter::equal});
  for (int i = 0; i < 6; ++i) (void)backoff.next(rng);
  backoff.reset();
  EXPECT_LE(backoff.next(rng), 100ms);
}

TEST(Rng, BetweenIsInclusiveAndReplays) {
  SeededRng first(7), second(7);
  bool low = false, high = false;
  for (int i = 0; i < 1000; ++i) {
    const auto draw = first.between(std::uint64_t{3}, std::uint64_t{5});
    EXPECT_EQ(draw, second.between(std::uint64_t{3}, std::uint64_t{5}));
    EXPECT_GE(draw, 3u);
    EXPECT_LE(draw, 5u);
    low |= draw == 3;
    high |= draw == 5;
  }
  EXPECT_TRUE(low && high);
}

}  // namespace
}  // namespace haulout
