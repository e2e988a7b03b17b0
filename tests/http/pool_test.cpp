#include "http/pool.hpp"

#include <gtest/gtest.h>

namespace haulout::http {
namespace {

using namespace std::chrono_literals;

// A connection that always appears to be open.
class OpenWire final : public Wire {
 public:
  explicit OpenWire(int& open) : open_(open) { ++open_; }
  ~OpenWire() override { --open_; }
  OpenWire(const OpenWire&) = delete;
  OpenWire& operator=(const OpenWire&) = delete;
  boost::asio::awaitable<Outcome> read_some(std::span<char>) override { co_return Outcome{}; }
  boost::asio::awaitable<boost::system::error_code> write(std::string_view) override {
    co_return boost::system::error_code();
  }
  void wake_from(int) override {}
  bool quiet() override { return true; }
  void finish_sending() override {}
  void abort() override {}

 private:
  int& open_;
};

class PoolTest : public ::testing::Test {
 protected:
  void put(TimePoint when) { pool.put(std::make_unique<OpenWire>(open), pool.generation(), when); }
  const TimePoint start{1h};
  int open = 0;
  Pool pool{2, 30s};
};

// Load balancers close idle connections without notice. So the pool does not reuse a connection that was idle for too
// long.
TEST_F(PoolTest, AConnectionIsNotKeptBeyondItsTime) {
  put(start);
  EXPECT_NE(pool.take(start + 29s), nullptr);
  put(start);
  EXPECT_EQ(pool.take(start + 31s), nullptr);
  EXPECT_EQ(open, 0) << "it is closed";
}

TEST_F(PoolTest, ThatTimeIsLookedAtWheneverOneComesBack) {
  put(start);
  put(start + 31s);
  EXPECT_EQ(open, 1);
  EXPECT_EQ(pool.size(), 1u);
}

TEST_F(PoolTest, MoreThanItHoldsAreClosedOldestFirst) {
  for (int i = 0; i < 3; ++i) put(start + i * 1s);
  EXPECT_EQ(open, 2);
  EXPECT_EQ(pool.size(), 2u);
}

TEST_F(PoolTest, WhatWasMadeBeforeItWasClearedIsNotTakenBack) {
  const std::uint64_t before = pool.generation();
  pool.clear();
  pool.put(std::make_unique<OpenWire>(open), before, start);
  EXPECT_EQ(pool.take(start), nullptr);
  EXPECT_EQ(open, 0);
}

}  // namespace
}  // namespace haulout::http
