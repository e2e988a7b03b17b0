#include "agent/process/process.hpp"

#include <csignal>

#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;

// Each test starts with the signal handlers of a program in the foreground, however the tests were started. A program
// in the background ignores SIGINT, and a program under nohup ignores SIGHUP.
class SignalsTest : public haulout::testing::VirtualTimeTest {
 protected:
  SignalsTest() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
  }
};

boost::asio::awaitable<void> pass(Clock& clock, Duration duration, bool& ended) {
  co_await clock.sleep_until(clock.now() + duration);
  ended = true;
}

boost::asio::awaitable<void> raise_and_sleep(Clock& clock, int signal) {
  ::raise(signal);
  co_await clock.sleep_until(TimePoint::max());
}

boost::asio::awaitable<void> raise_and_pass(Clock& clock, int signal, bool& ended) {
  ::raise(signal);
  co_await pass(clock, std::chrono::seconds(3), ended);
}

boost::asio::awaitable<std::optional<int>> race(Signals& signals, boost::asio::awaitable<void> work,
                                                boost::asio::awaitable<void> helper) {
  std::vector<boost::asio::awaitable<void>> helpers;
  helpers.push_back(std::move(helper));
  co_return co_await until_signal(signals, std::move(work), std::move(helpers));
}

TEST_F(SignalsTest, WorkThatEndsEndsItsHelpers) {
  Signals signals(context.get_executor());
  bool worked = false;
  bool helped = false;
  EXPECT_EQ(run(race(signals, pass(clock, 3s, worked), pass(clock, 1h, helped))), std::nullopt);
  EXPECT_TRUE(worked);
  EXPECT_FALSE(helped);
  EXPECT_EQ(elapsed(), Duration(3s));
}

TEST_F(SignalsTest, ASignalEndsWorkAndHelpers) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Signals signals(context.get_executor());
    bool helped = false;
    EXPECT_EQ(run(race(signals, raise_and_sleep(clock, signal), pass(clock, 1h, helped))), signal);
    EXPECT_FALSE(helped);
    std::signal(SIGHUP, SIG_DFL);  // the first signal made the process ignore SIGHUP
  }
}

TEST_F(SignalsTest, WithoutThemASignalEndsTheProcessAgain) {
  std::optional<Signals> signals(std::in_place, context.get_executor());
  bool worked = false;
  bool helped = false;
  run(race(*signals, pass(clock, 3s, worked), pass(clock, 1h, helped)));
  signals.reset();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction present{};
    ASSERT_EQ(::sigaction(signal, nullptr, &present), 0);
    EXPECT_EQ(present.sa_handler, SIG_DFL) << signal;
  }
}

TEST_F(SignalsTest, WhatIsIgnoredAtTheStartStaysIgnored) {
  for (const int signal : {SIGINT, SIGHUP}) {
    std::signal(signal, SIG_IGN);
    Signals signals(context.get_executor());
    bool worked = false;
    bool helped = false;
    EXPECT_EQ(run(race(signals, raise_and_pass(clock, signal, worked), pass(clock, 1h, helped))), std::nullopt);
    EXPECT_TRUE(worked);
    EXPECT_EQ(std::signal(signal, SIG_DFL), SIG_IGN) << "afterwards as well";
  }
}

TEST_F(SignalsTest, SIGTERMIsNeverIgnored) {
  std::signal(SIGTERM, SIG_IGN);
  Signals signals(context.get_executor());
  bool helped = false;
  EXPECT_EQ(run(race(signals, raise_and_sleep(clock, SIGTERM), pass(clock, 1h, helped))), SIGTERM);
}

}  // namespace
}  // namespace haulout::agent
