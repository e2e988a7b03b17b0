#include "agent/dbus/flatcar_backend.hpp"

#include "tests/agent/dbus/bus_fixture.hpp"

namespace haulout::testing {
namespace {

using agent::judge_update_status;
using agent::Need;
using agent::Pending;
using ::testing::ElementsAre;

TEST(UpdateStatus, OnlyAnUpdateThatWaitsForItsRebootNeedsOne) {
  const std::pair<const char*, Need> rows[] = {{"UPDATE_STATUS_UPDATED_NEED_REBOOT", Need::yes},
                                               {"UPDATE_STATUS_IDLE", Need::no},
                                               {"UPDATE_STATUS_CHECKING_FOR_UPDATE", Need::no},
                                               {"UPDATE_STATUS_UPDATE_AVAILABLE", Need::no},
                                               {"UPDATE_STATUS_DOWNLOADING", Need::no},
                                               {"UPDATE_STATUS_VERIFYING", Need::no},
                                               {"UPDATE_STATUS_FINALIZING", Need::no},
                                               {"UPDATE_STATUS_REPORTING_ERROR_EVENT", Need::unknown},
                                               {"UPDATE_STATUS_SOMETHING_NEW", Need::unknown},
                                               {"UPDATED_NEED_REBOOT", Need::unknown},
                                               {"UPDATE_STATUS_UPDATED_NEED_REBOOT ", Need::unknown},
                                               {"", Need::unknown}};
  for (const auto& [operation, need] : rows) {
    const Pending pending = judge_update_status({operation, "4152.2.1"});
    EXPECT_EQ(pending.need, need) << operation;
    EXPECT_EQ(pending.problem.empty(), need != Need::unknown) << operation;
    EXPECT_EQ(pending.target, need == Need::yes ? "4152.2.1" : "") << operation;
  }
}

TEST(UpdateStatus, AVersionThatItDoesNotKnowIsNoTarget) {
  for (const char* const version : {"0.0.0", ""}) {
    const Pending pending = judge_update_status({"UPDATE_STATUS_UPDATED_NEED_REBOOT", version});
    EXPECT_EQ(pending.need, Need::yes);
    EXPECT_EQ(pending.target, "");
    EXPECT_EQ(pending.reasons.size(), 1u);
  }
}

class FlatcarBackendTest : public LiveBusTest {
 protected:
  agent::FlatcarBackend backend{bus, rng, agent::HostRoot(root.path())};
};

TEST_F(FlatcarBackendTest, AsksUpdateEngine) {
  update1.operation = "UPDATE_STATUS_UPDATED_NEED_REBOOT";
  update1.new_version = "4152.2.1";
  update1.connect(daemon.address());
  run({&update1}, [&](TaskGroup&) -> awaitable<void> {
    const Pending pending = co_await backend.pending(soon());
    EXPECT_EQ(pending, (Pending{Need::yes, {"Flatcar 4152.2.1"}, "4152.2.1", ""}));
    auto applied = co_await backend.apply("4152.2.1", soon());
    EXPECT_TRUE(applied);
  });
}

TEST_F(FlatcarBackendTest, WithoutUpdateEngineNothingIsKnown) {
  run({}, [&](TaskGroup&) -> awaitable<void> {
    const Pending pending = co_await backend.pending(soon());
    EXPECT_EQ(pending.need, Need::unknown);
    EXPECT_NE(pending.problem, "");
  });
}

TEST_F(FlatcarBackendTest, AnAnswerOfOtherTypesIsNotUnderstood) {
  update1.strange = true;
  update1.connect(daemon.address());
  run({&update1}, [&](TaskGroup&) -> awaitable<void> {
    const Pending pending = co_await backend.pending(soon());
    EXPECT_EQ(pending.need, Need::unknown);
    EXPECT_NE(pending.problem, "");
  });
}

TEST_F(FlatcarBackendTest, TheVersionThatRuns) {
  run({}, [&](TaskGroup&) -> awaitable<void> {
    auto none = co_await backend.booted(soon());
    EXPECT_FALSE(none);
    root.write("etc/os-release", "VERSION=4152.2.0\n");
    auto version = co_await backend.booted(soon());
    EXPECT_EQ(version.value(), "4152.2.0");
  });
}

TEST_F(FlatcarBackendTest, IsWokenByWhatChangesAndByNothingElse) {
  update1.connect(daemon.address());
  int changes = 0;
  const auto watch = [&]() -> awaitable<void> {
    while (true) {
      co_await backend.changed();
      ++changes;
      event.notify();
    }
  };
  run({&update1}, [&](TaskGroup& group) -> awaitable<void> {
    group.spawn(watch());
    co_await until([&] { return changes == 1; });  // the connection is established
    update1.operation = "UPDATE_STATUS_DOWNLOADING";
    co_await backend.pending(soon());
    for (const double progress : {0.1, 0.2, 0.3}) update1.send_status(progress);
    // When pending() has its answer, the agent has also received all signals that were sent before.
    co_await backend.pending(soon());
    EXPECT_EQ(changes, 1);
    update1.operation = "UPDATE_STATUS_UPDATED_NEED_REBOOT";
    update1.send_status();
    co_await until([&] { return changes == 2; });
    co_await backend.pending(soon());
    update1.send_nonsense();
    co_await until([&] { return changes == 3; });
    update1.leave();
    co_await until([&] { return changes == 4; });
  });
}

TEST_F(FlatcarBackendTest, LooksAgainEveryTenMinutesOrSo) {
  EXPECT_TRUE(looks_again([&] { return backend.changed(); }));
}

TEST_F(FlatcarBackendTest, IsWokenWhenTheBusComesBack) {
  run({}, [&](TaskGroup&) -> awaitable<void> {
    co_await backend.changed();
    const Pending before = co_await backend.pending(soon());
    EXPECT_EQ(before.need, Need::unknown);
    daemon.stop();
    co_await backend.changed();
    daemon.start();
    co_await backend.changed();
    EXPECT_TRUE(bus.connected());
  });
}

class FlatcarUpdaterTest : public LiveBusTest {
 protected:
  std::size_t attempts() const { return static_cast<std::size_t>(std::ranges::count(update1.calls, "AttemptUpdate")); }
  agent::FlatcarUpdater updater{bus, rng, std::chrono::milliseconds(1)};
};

TEST_F(FlatcarUpdaterTest, InstallsWhatUpdateEngineFinds) {
  update1.after_attempt = {"UPDATE_STATUS_IDLE", "UPDATE_STATUS_CHECKING_FOR_UPDATE", "UPDATE_STATUS_DOWNLOADING",
                           "UPDATE_STATUS_FINALIZING", "UPDATE_STATUS_UPDATED_NEED_REBOOT"};
  update1.connect(daemon.address());
  run({&update1}, [&](TaskGroup&) -> awaitable<void> {
    auto done = co_await updater.install(soon());
    EXPECT_TRUE(done) << done.error().message();
    EXPECT_EQ(update1.operation, "UPDATE_STATUS_UPDATED_NEED_REBOOT");
    // A second call does not request an update that is installed already.
    done = co_await updater.install(soon());
    EXPECT_TRUE(done);
    EXPECT_EQ(attempts(), 1u);
    const agent::Updates updates = co_await updater.look(soon());
    EXPECT_EQ(updates.need, Need::no) << "only the reboot is left";
  });
}

TEST_F(FlatcarUpdaterTest, NoUpdateIsASuccess) {
  update1.after_attempt = {"UPDATE_STATUS_IDLE", "UPDATE_STATUS_CHECKING_FOR_UPDATE", "UPDATE_STATUS_IDLE"};
  update1.connect(daemon.address());
  run({&update1}, [&](TaskGroup&) -> awaitable<void> {
    const auto done = co_await updater.install(soon());
    EXPECT_TRUE(done) << done.error().message();
    EXPECT_EQ(attempts(), 1u);
  });
}

// P4: neither a failure nor an endless download is a success.
TEST_F(FlatcarUpdaterTest, AFailureIsNoSuccess) {
  update1.after_attempt = {"UPDATE_STATUS_CHECKING_FOR_UPDATE", "UPDATE_STATUS_REPORTING_ERROR_EVENT"};
  update1.connect(daemon.address());
  run({&update1}, [&](TaskGroup&) -> awaitable<void> {
    const auto failed = co_await updater.install(soon());
    EXPECT_FALSE(failed);
    const agent::Updates updates = co_await updater.look(soon());
    EXPECT_EQ(updates.need, Need::unknown);
    EXPECT_THAT(updates.problem, ::testing::HasSubstr("update-engine"));
    update1.after_attempt = {"UPDATE_STATUS_DOWNLOADING"};
    const auto late = co_await updater.install(shortly());
    EXPECT_FALSE(late);
  });
}

TEST_F(FlatcarUpdaterTest, WithoutUpdateEngineNothingIsKnown) {
  run({}, [&](TaskGroup&) -> awaitable<void> {
    const agent::Updates updates = co_await updater.look(soon());
    EXPECT_EQ(updates.need, Need::unknown);
    const auto done = co_await updater.install(soon());
    EXPECT_FALSE(done);
  });
}

}  // namespace
}  // namespace haulout::testing
