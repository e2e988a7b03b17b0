#include "agent/dbus/rpm_ostree_backend.hpp"

#include "tests/agent/dbus/bus_fixture.hpp"

namespace haulout::testing {
namespace {

using agent::Deployment;
using agent::judge_deployments;
using agent::Need;
using agent::Pending;
using ::testing::HasSubstr;

const Deployment old_one{"40.1", "c0", false, false, false};
const Deployment running{"41.1", "c1", true, false, false};
const Deployment next_one{"42.1", "c2", false, false, false};
const Deployment staged{"42.1", "c2", false, true, false};
const Deployment locked{"42.1", "c2", false, true, true};

TEST(Deployments, ARebootIsNeededExactlyWhenItWouldBootSomethingElse) {
  struct Row {
    const char* name;
    std::vector<Deployment> deployments;
    Need need;
    const char* target;
  };
  const Row rows[] = {{"just the running one", {running}, Need::no, ""},
                      {"a rollback behind it", {running, old_one}, Need::no, ""},
                      {"staged", {staged, running, old_one}, Need::yes, "42.1"},
                      {"staged, listed behind", {running, staged}, Need::yes, "42.1"},
                      {"written, not staged", {next_one, running}, Need::yes, "42.1"},
                      {"rolled back by hand", {old_one, running}, Need::yes, "40.1"},
                      {"staged and locked", {locked, running}, Need::unknown, ""},
                      {"nothing booted", {next_one}, Need::unknown, ""},
                      {"nothing at all", {}, Need::unknown, ""}};
  for (const Row& row : rows) {
    const Pending pending = judge_deployments(row.deployments);
    EXPECT_EQ(pending.need, row.need) << row.name;
    EXPECT_EQ(pending.target, row.target) << row.name;
    EXPECT_EQ(pending.problem.empty(), row.need != Need::unknown) << row.name;
    EXPECT_EQ(pending.reasons.size(), row.need == Need::yes ? 1u : 0u) << row.name;
  }
}

// `rpm-ostree finalize-deployment` unlocks the deployment, too, but it reboots the machine before the drain.
TEST(Deployments, ALockedOneIsUnlockedWithoutAReboot) {
  EXPECT_THAT(judge_deployments({locked, running}).problem,
              ::testing::AllOf(HasSubstr("ostree admin lock-finalization --unlock"),
                               HasSubstr("Do not run rpm-ostree finalize-deployment")));
}

TEST(Deployments, WithoutAVersionTheChecksumTellsThemApart) {
  const Deployment nameless{"", "c9", false, true, false};
  EXPECT_EQ(judge_deployments({nameless, running}).target, "c9");
}

class RpmOstreeBackendTest : public LiveBusTest {
 protected:
  using Row = FakeRpmOstree1::Deployment;

  agent::RpmOstreeBackend backend{bus, rng};

  static Row row(const std::string& version, const std::string& checksum, bool booted, bool is_staged) {
    Row out;
    out["id"] = sdbus::Variant("fedora-coreos-" + checksum + ".0");
    out["serial"] = sdbus::Variant(std::int32_t{0});
    out["timestamp"] = sdbus::Variant(std::uint64_t{1700000000});
    out["checksum"] = sdbus::Variant(checksum);
    if (!version.empty()) out["version"] = sdbus::Variant(version);
    out["booted"] = sdbus::Variant(booted);
    out["staged"] = sdbus::Variant(is_staged);
    return out;
  }
};

TEST_F(RpmOstreeBackendTest, ReadsTheDeployments) {
  rpm_ostree1.deployments = {row("42.1", "c2", false, true), row("41.1", "c1", true, false)};
  rpm_ostree1.connect(daemon.address());
  run({&rpm_ostree1}, [&](TaskGroup&) -> awaitable<void> {
    const Pending pending = co_await backend.pending(soon());
    EXPECT_EQ(pending, (Pending{Need::yes, {"staged deployment 42.1"}, "42.1", ""}));
    auto version = co_await backend.booted(soon());
    EXPECT_EQ(version.value(), "41.1");
    auto applied = co_await backend.apply("42.1", soon());
    EXPECT_TRUE(applied);
  });
}

// With layered packages each node composes a commit of its own.
TEST_F(RpmOstreeBackendTest, AChecksumIsNoVersionThatNodesShare) {
  rpm_ostree1.deployments = {row("", "c2", false, true), row("41.1", "c1", true, false)};
  rpm_ostree1.connect(daemon.address());
  run({&rpm_ostree1}, [&](TaskGroup&) -> awaitable<void> {
    EXPECT_TRUE(backend.versions_are_shared());
    const Pending pending = co_await backend.pending(soon());
    EXPECT_EQ(pending.target, "c2");
    EXPECT_FALSE(backend.versions_are_shared());
  });
}

TEST_F(RpmOstreeBackendTest, ALockedDeploymentIsSeenAsSuch) {
  rpm_ostree1.deployments = {row("42.1", "c2", false, true), row("41.1", "c1", true, false)};
  rpm_ostree1.deployments[0]["finalization-locked"] = sdbus::Variant(true);
  rpm_ostree1.connect(daemon.address());
  run({&rpm_ostree1}, [&](TaskGroup&) -> awaitable<void> {
    const Pending pending = co_await backend.pending(soon());
    EXPECT_EQ(pending.need, Need::unknown);
    EXPECT_THAT(pending.problem, HasSubstr("42.1"));
  });
}

TEST_F(RpmOstreeBackendTest, WhatIsTypedOtherwiseIsNotUnderstood) {
  const std::vector<Row> good{row("41.1", "c1", true, false)};
  std::vector<std::vector<Row>> bad(3, good);
  bad[0][0]["booted"] = sdbus::Variant("yes");
  bad[1][0]["checksum"] = sdbus::Variant(std::uint32_t{1});
  bad[2][0].erase("checksum");
  rpm_ostree1.connect(daemon.address());
  run({&rpm_ostree1}, [&](TaskGroup&) -> awaitable<void> {
    for (const auto& deployments : bad) {
      rpm_ostree1.deployments = deployments;
      const Pending pending = co_await backend.pending(soon());
      EXPECT_EQ(pending.need, Need::unknown);
      EXPECT_NE(pending.problem, "");
      auto version = co_await backend.booted(soon());
      EXPECT_EQ(error_of(version).code(), Errc::decode);
    }
  });
}

TEST_F(RpmOstreeBackendTest, WithoutRpmOstreeNothingIsKnown) {
  run({}, [&](TaskGroup&) -> awaitable<void> {
    const Pending pending = co_await backend.pending(soon());
    EXPECT_EQ(pending.need, Need::unknown);
    EXPECT_NE(pending.problem, "");
  });
}

// rpm-ostreed sends no signal about a deployment that bootc stages while rpm-ostreed does not run. So the back end also
// asks rpm-ostreed at intervals.
TEST_F(RpmOstreeBackendTest, LooksAgainEveryTenMinutesOrSo) {
  EXPECT_TRUE(looks_again([&] { return backend.changed(); }));
}

TEST_F(RpmOstreeBackendTest, IsWokenByNewDeploymentsAndNotByTheDaemonsNaps) {
  rpm_ostree1.deployments = {row("41.1", "c1", true, false)};
  rpm_ostree1.connect(daemon.address());
  int changes = 0;
  const auto watch = [&]() -> awaitable<void> {
    while (true) {
      co_await backend.changed();
      ++changes;
      event.notify();
    }
  };
  run({&rpm_ostree1}, [&](TaskGroup& group) -> awaitable<void> {
    group.spawn(watch());
    co_await until([&] { return changes == 1; });  // the connection is established
    rpm_ostree1.tell();
    co_await until([&] { return changes == 2; });
    rpm_ostree1.leave();
    // Once the bus reports that the service is gone, all signals about its end have been received.
    Pending pending;
    do pending = co_await backend.pending(soon());
    while (pending.need != Need::unknown);
    EXPECT_EQ(changes, 2);
  });
}

}  // namespace
}  // namespace haulout::testing
