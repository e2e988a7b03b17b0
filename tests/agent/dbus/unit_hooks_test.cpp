#include "agent/dbus/unit_hooks.hpp"

#include <sys/wait.h>

#include "tests/agent/dbus/bus_fixture.hpp"
#include "tests/agent/dbus/fake_units.hpp"

namespace haulout::testing {
namespace {

using agent::HookPoint;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string unit = "haulout-hook-after-drain-50-ceph.service";

class UnitHooksTest : public LiveBusTest {
 protected:
  UnitHooksTest() { units.connect(daemon.address()); }

  // Runs the hook. Calls `meanwhile` once the fake systemd has received the call `awaited`.
  Result<> run_hook(const std::string& awaited, const std::function<void()>& meanwhile, TimePoint deadline) {
    std::optional<Result<>> out;
    run({&units}, [&](TaskGroup& group) -> awaitable<void> {
      group.spawn(ask(out, deadline));
      co_await until(
          [&] { return out || std::find(units.calls.begin(), units.calls.end(), awaited) != units.calls.end(); });
      if (!out) meanwhile();
      co_await until([&] { return out.has_value(); });
    });
    return *out;
  }
  awaitable<void> ask(std::optional<Result<>>& out, TimePoint deadline) {
    out = co_await hooks.run(HookPoint::after_drain, "50-ceph", {{"HAULOUT_NODE", "n1"}, {"HAULOUT_REASONS", "a\nb"}},
                             deadline);
    event.notify();
  }
  const std::string started = "Start(" + unit + ")";
  FakeUnits units{context.get_executor(), clock, event};
  agent::UnitHooks hooks{agent::HostRoot(root.path()), bus, "/etc/haulout/hooks.d"};
};

TEST_F(UnitHooksTest, IsAOneShotWithItsTimeAndEnvironment) {
  using Exec = sdbus::Struct<std::string, std::vector<std::string>, bool>;
  const auto done = run_hook(
      started,
      [&] {
        auto& properties = units.units[unit].properties;
        EXPECT_EQ(properties["Type"].get<std::string>(), "oneshot");
        const auto exec = properties["ExecStart"].get<std::vector<Exec>>();
        ASSERT_EQ(exec.size(), 1u);
        const std::string path = "/etc/haulout/hooks.d/after-drain/50-ceph";
        EXPECT_EQ(std::get<0>(exec[0]), path);
        EXPECT_THAT(std::get<1>(exec[0]), ElementsAre(path, "after-drain"));
        EXPECT_FALSE(std::get<2>(exec[0]));
        EXPECT_THAT(properties["Environment"].get<std::vector<std::string>>(),
                    ElementsAre("HAULOUT_NODE=n1", "HAULOUT_REASONS=a\nb"));
        const auto limit = properties["TimeoutStartUSec"].get<std::uint64_t>();
        EXPECT_GT(limit, 20'000'000u);
        EXPECT_LE(limit, 60'000'000u);
        EXPECT_TRUE(properties["AddRef"].get<bool>());
        EXPECT_EQ(properties["CollectMode"].get<std::string>(), "inactive-or-failed");
        units.units[unit].active_state = "activating";
        units.end_unit(unit, "success", CLD_EXITED, 0);
      },
      soon());
  EXPECT_TRUE(done) << done.error().message();
  EXPECT_THAT(units.calls, Contains("UnrefUnit(" + unit + ")"));
}

TEST_F(UnitHooksTest, AFailureSaysHowAndTheLastOfItsErrors) {
  const auto done =
      run_hook(started, [&] { units.end_unit(unit, "exit-code", CLD_EXITED, 3, "trying\nno quorum\n"); }, soon());
  const Error error = error_of(done);
  EXPECT_EQ(error.code(), Errc::unavailable);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("after-drain/50-ceph"), HasSubstr("exit status 3: no quorum"),
                                     HasSubstr("journalctl -u " + unit), Not(HasSubstr("trying"))));
}

TEST_F(UnitHooksTest, SystemdEndsWhatTakesTooLong) {
  const auto done = run_hook(started, [&] { units.end_unit(unit, "timeout", CLD_KILLED, SIGTERM); }, soon());
  EXPECT_EQ(error_of(done).code(), Errc::timeout);
}

// A unit that a person stops has not succeeded, although systemd reports the result `success` for it.
TEST_F(UnitHooksTest, AnythingButAnExitWithZeroIsAFailure) {
  const auto stopped = run_hook(started, [&] { units.end_unit(unit, "success", CLD_KILLED, SIGTERM); }, soon());
  EXPECT_THAT(error_of(stopped).message(), HasSubstr("signal 15"));
}

TEST_F(UnitHooksTest, AJobThatNeverRanIsAFailure) {
  const auto done = run_hook(started, [&] { units.end_unit(unit, "success", 0, 0); }, soon());
  EXPECT_THAT(error_of(done).message(), HasSubstr("was not run"));
}

TEST_F(UnitHooksTest, ARefusalIsExplained) {
  units.refusal = dbus_error("org.freedesktop.DBus.Error.AccessDenied", "no");
  const auto done = run_hook(started, [] {}, soon());
  EXPECT_THAT(error_of(done).message(), HasSubstr("50-ceph"));
}

// P7: the agent was restarted while the hook was running. The next agent waits for the end of the running unit, and
// does not start the hook again.
TEST_F(UnitHooksTest, APredecessorsUnitIsFollowedToItsEnd) {
  units.add_running(unit);
  const auto done =
      run_hook("RefUnit(" + unit + ")", [&] { units.end_unit(unit, "exit-code", CLD_EXITED, 1); }, soon());
  EXPECT_THAT(error_of(done).message(), HasSubstr("exit status 1"));
  EXPECT_THAT(units.calls, Not(Contains(started)));
}

TEST_F(UnitHooksTest, AnEndThatIsLostIsNoSuccessAndItRunsOnceMore) {
  units.add_running(unit);
  bool again = false;
  std::optional<Result<>> out;
  run({&units}, [&](TaskGroup& group) -> awaitable<void> {
    group.spawn(ask(out, soon()));
    co_await until([&] { return !units.calls.empty() && units.calls.back() == "RefUnit(" + unit + ")"; });
    units.collect(unit);
    co_await until([&] { return units.calls.back() == started; });
    again = true;
    units.end_unit(unit, "success", CLD_EXITED, 0);
    co_await until([&] { return out.has_value(); });
  });
  EXPECT_TRUE(again);
  EXPECT_TRUE(*out);
}

}  // namespace
}  // namespace haulout::testing
