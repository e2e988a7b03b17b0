#include "agent/dbus/logind.hpp"

#include <fcntl.h>

#include "agent/dbus/bus_call.hpp"
#include "tests/agent/dbus/bus_fixture.hpp"

namespace haulout::testing {
namespace {

using ::testing::ElementsAre;

constexpr const char* asked = "Inhibit(shutdown,haulout,delay)";

class ShutdownInhibitorTest : public LiveBusTest {
 protected:
  agent::ShutdownInhibitor inhibitor{bus, rng};

  // Runs `body` together with logind, the inhibitor and a task that forwards the inhibitor's changes to `event`.
  void run_held(std::function<awaitable<void>(TaskGroup&)> body) {
    login1.connect(daemon.address());
    run({&login1}, [&](TaskGroup& group) {
      group.spawn(inhibitor.run());
      group.spawn(forward());
      return body(group);
    });
  }
  awaitable<void> both_hold() {
    return until([&] { return inhibitor.held() && login1.locks == 1; });
  }

 private:
  awaitable<void> forward() {
    while (true) {
      co_await inhibitor.changed();
      event.notify();
    }
  }
};

TEST_F(ShutdownInhibitorTest, HoldsTheLockWhileAskedTo) {
  run_held([&](TaskGroup&) -> awaitable<void> {
    inhibitor.hold("drains this node first");
    co_await both_hold();
    EXPECT_EQ(inhibitor.problem(), "");
    EXPECT_EQ(inhibitor.shutdown_at(), std::nullopt);
    inhibitor.release();
    EXPECT_FALSE(inhibitor.held());
    co_await until([&] { return login1.locks == 0; });
  });
  EXPECT_THAT(login1.calls, ElementsAre(asked, "released"));
}

// Counts the pipes among this process's file descriptors that a child process would inherit.
int inheritable_pipes() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    const int flags = ::fcntl(std::stoi(entry.path().filename()), F_GETFD);
    if (target.starts_with("pipe:") && flags >= 0 && (flags & FD_CLOEXEC) == 0) ++count;
  }
  return count;
}

TEST_F(ShutdownInhibitorTest, AChildProcessDoesNotInheritTheLock) {
  const int before = inheritable_pipes();
  run_held([&](TaskGroup&) -> awaitable<void> {
    inhibitor.hold("x");
    co_await both_hold();
    EXPECT_EQ(inheritable_pipes(), before);
  });
}

TEST_F(ShutdownInhibitorTest, UnaskedItTakesNone) {
  run_held([&](TaskGroup&) -> awaitable<void> {
    for (int i = 0; i < 3; ++i) {
      auto there = co_await agent::bus_call<std::string>(bus, agent::login1("CanReboot"), soon());
      EXPECT_TRUE(there);
    }
  });
  EXPECT_THAT(login1.calls, ::testing::Each("CanReboot"));
}

TEST_F(ShutdownInhibitorTest, TellsHowLongLogindReallyWaits) {
  login1.delay_max_usec = 7'000'000;
  run_held([&](TaskGroup&) -> awaitable<void> {
    inhibitor.hold("x");
    co_await both_hold();
    const TimePoint before = clock.now();
    login1.prepare(true);
    co_await until([&] { return inhibitor.shutdown_at().has_value(); });
    EXPECT_GE(inhibitor.shutdown_at(), before + std::chrono::seconds(7));
    EXPECT_LE(inhibitor.shutdown_at(), in(std::chrono::seconds(7)));
    EXPECT_TRUE(inhibitor.held());
  });
}

TEST_F(ShutdownInhibitorTest, ASettingThatChangedSinceTheLockWasTakenIsReadAgain) {
  run_held([&](TaskGroup&) -> awaitable<void> {
    inhibitor.hold("x");
    co_await both_hold();
    login1.delay_max_usec = 2'000'000;
    login1.prepare(true);
    co_await until([&] { return inhibitor.shutdown_at() && inhibitor.shutdown_at() < in(std::chrono::seconds(3)); });
  });
}

// As soon as it learns of a shutdown, the agent decides by logind's delay limit what it can still do. So the limit must
// be current by then.
TEST_F(ShutdownInhibitorTest, AShutdownIsToldWithTheLimitThatHoldsNow) {
  run_held([&](TaskGroup&) -> awaitable<void> {
    inhibitor.hold("x");
    co_await both_hold();
    login1.delay_max_usec = 2'000'000;
    const TimePoint told = clock.now();
    login1.prepare(true);
    co_await until([&] { return inhibitor.shutdown_at().has_value(); });
    EXPECT_GE(inhibitor.shutdown_at(), told + std::chrono::seconds(2));
    EXPECT_LT(inhibitor.shutdown_at(), in(std::chrono::seconds(3)));
  });
}

// If logind sends the signal but does not answer calls, the last known limit applies.
TEST_F(ShutdownInhibitorTest, AShutdownOfALogindThatDoesNotAnswerIsTold) {
  run_held([&](TaskGroup&) -> awaitable<void> {
    inhibitor.hold("x");
    co_await both_hold();
    login1.says_no_properties = true;
    login1.prepare(true);
    co_await until([&] { return inhibitor.shutdown_at().has_value(); });
    EXPECT_GT(inhibitor.shutdown_at(), in(std::chrono::seconds(20)));
    login1.prepare(false);
    co_await until([&] { return !inhibitor.shutdown_at(); });
  });
}

TEST_F(ShutdownInhibitorTest, WhatTheMachineIsAtIsKnownOnceItWasAsked) {
  login1.preparing = true;
  EXPECT_FALSE(inhibitor.known());
  run_held([&](TaskGroup&) -> awaitable<void> {
    // The inhibitor asks logind whether a shutdown is in progress even if hold() was not called.
    co_await until([&] { return inhibitor.known(); });
    EXPECT_TRUE(inhibitor.shutdown_at());
    EXPECT_EQ(inhibitor.problem(), "");
  });
}

TEST_F(ShutdownInhibitorTest, WhereNobodyAnswersNothingMoreIsToBeKnown) {
  login1.says_no_properties = true;
  run_held([&](TaskGroup&) -> awaitable<void> {
    co_await until([&] { return inhibitor.known(); });
    EXPECT_EQ(inhibitor.shutdown_at(), std::nullopt);
  });
}

TEST_F(ShutdownInhibitorTest, AnUnlimitedDelayIsNoOverflow) {
  login1.delay_max_usec = ~std::uint64_t{0};
  run_held([&](TaskGroup&) -> awaitable<void> {
    inhibitor.hold("x");
    co_await both_hold();
    login1.prepare(true);
    co_await until([&] { return inhibitor.shutdown_at().has_value(); });
    EXPECT_EQ(inhibitor.shutdown_at(), TimePoint::max());
  });
}

TEST_F(ShutdownInhibitorTest, AShutdownThatWasLetGoAndCalledOffIsDelayedTheNextTime) {
  run_held([&](TaskGroup&) -> awaitable<void> {
    inhibitor.hold("x");
    co_await both_hold();
    login1.prepare(true);
    co_await until([&] { return inhibitor.shutdown_at().has_value(); });
    inhibitor.let_shutdown_proceed();
    co_await until([&] { return login1.locks == 0; });
    EXPECT_LE(inhibitor.shutdown_at(), clock.now());
    login1.prepare(false);
    co_await both_hold();
    EXPECT_EQ(inhibitor.shutdown_at(), std::nullopt);
  });
  EXPECT_THAT(login1.calls, ElementsAre(asked, "released", asked));
}

TEST_F(ShutdownInhibitorTest, AShutdownThatBeganBeforeWeListenedIsNoticed) {
  login1.preparing = true;
  run_held([&](TaskGroup&) -> awaitable<void> {
    inhibitor.hold("x");
    co_await until([&] { return inhibitor.shutdown_at().has_value(); });
    EXPECT_FALSE(inhibitor.held());
    EXPECT_LE(inhibitor.shutdown_at(), clock.now());
  });
}

TEST_F(ShutdownInhibitorTest, TakesItAgainFromALogindThatWasRestarted) {
  run_held([&](TaskGroup& group) -> awaitable<void> {
    inhibitor.hold("x");
    co_await both_hold();
    login1.calls.clear();
    login1.leave();
    co_await until([&] { return !login1.connected(); });
    login1.connect(daemon.address());
    group.spawn(login1.serve());
    co_await until([&] { return login1.calls.size() == 2; });
    EXPECT_TRUE(inhibitor.held());
  });
  EXPECT_THAT(login1.calls, ElementsAre(asked, "released"));
}

TEST_F(ShutdownInhibitorTest, TakesItAgainAfterTheBusCameBack) {
  run_held([&](TaskGroup& group) -> awaitable<void> {
    inhibitor.hold("x");
    co_await both_hold();
    login1.calls.clear();
    daemon.stop();
    daemon.start();
    login1.connect(daemon.address());
    group.spawn(login1.serve());
    co_await until([&] { return login1.calls.size() == 2; });
    EXPECT_TRUE(inhibitor.held());
  });
  EXPECT_THAT(login1.calls, ElementsAre(asked, "released"));
}

TEST_F(ShutdownInhibitorTest, ARefusedLockIsAProblemAndTriedAgain) {
  login1.refuses_locks = true;
  run_held([&](TaskGroup&) -> awaitable<void> {
    inhibitor.hold("x");
    co_await until([&] { return !inhibitor.problem().empty(); });
    EXPECT_FALSE(inhibitor.held());
    login1.refuses_locks = false;
    co_await both_hold();
    EXPECT_EQ(inhibitor.problem(), "");
  });
}

}  // namespace
}  // namespace haulout::testing
