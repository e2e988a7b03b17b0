// Nodes that cannot be written, and Nodes whose resourceVersion goes back.
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;

struct Unwritten : Fleet {
  Unwritten() {
    way = [this] { return &faults; };
  }
  // From the moment at which the Node shows `wanted`, the API server refuses to patch Nodes.
  void refuse_writes_in(const std::string& wanted) {
    cluster.on_change([this, wanted](const sim::Change& change) {
      if (refused_ || change.key.resource != "nodes" || state("n1") != wanted) return;
      refused_ = true;
      cluster.forbid("patch", "nodes");
    });
  }
  // Returns how often the agent reports ApiUnavailable on its machine when `refusals` writes are refused.
  std::ptrdiff_t troubles_told_of(std::size_t refusals) {
    faults.add({.verb = "patch",
                .resource = "nodes",
                .skip = 1,
                .count = refusals,
                .fault = {.kind = sim::FaultKind::server_error}});
    Machine& n1 = machine("n1");
    std::vector<std::string> told;
    n1.on_told = [&](const agent::Status& status) { told.push_back(status.reason); };
    run_fleet();
    expect_updated(n1);
    EXPECT_EQ(faults.struck().size(), refusals);
    return std::count(told.begin(), told.end(), "ApiUnavailable");
  }
  // n1 is drained and waits for another tool to reboot it. The agent writes only its condition, every few minutes.
  void expect_heartbeats() {
    const auto heard_at = [this] {
      return sim::text(sim::condition(node("n1"), "MaintenanceInProgress"), "/lastHeartbeatTime");
    };
    std::string before;
    after(30min, [&] {
      EXPECT_EQ(state("n1"), "ready") << story();
      before = heard_at();
      EXPECT_NE(before, "");
    });
    after(36min, [&] { EXPECT_GT(heard_at(), before) << story(); });
    run_for(37min);
  }

  // After three minutes, restores the state of two minutes before, which is 400 revisions older.
  void restore_an_old_etcd() {
    after(1min, [this] { backup_ = cluster.revision(); });
    after(2min, [this] {
      for (int i = 0; i < 400; ++i)
        cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"noise", std::to_string(i)}}}}}});
    });
    after(3min, [this] { cluster.restore_etcd(backup_); });
  }

  sim::FaultTransport faults{cluster.api(), clock, world_rng};

 private:
  std::uint64_t backup_ = 0;
  bool refused_ = false;
};

TEST_F(Unwritten, P3_TheReadyFileGoesWithTheCordonAllTheSame) {
  Machine& n1 = machine("n1");
  after(1s, [&] { n1.block("apt"); });
  refuse_writes_in("ready");
  after(10min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    EXPECT_TRUE(n1.shows_ready());
    uncordon("n1");
  });
  after(10min + 3s, [&] {
    EXPECT_FALSE(n1.shows_ready()) << story();
    cluster.permit("patch", "nodes");
    n1.block("");
  });
  run_fleet();
  expect_updated(n1);
}

TEST_F(Unwritten, P6_WithoutItsTurnNothingIsEvictedAllTheSame) {
  options.drain.max_concurrent = 1;
  machine("n1");
  for (int i = 0; i < 20; ++i) {
    PodSpec slow;
    slow.grace = 30;
    add(a_pod("slow-" + std::to_string(i), slow));
  }
  after(1min, [&] { cluster.forbid("patch", "nodes"); });
  std::size_t before = 0;
  after(3min, [&] {
    checks.by_a_person([&] {
      for (const Json& lease : cluster.all("leases")) cluster.remove("leases", "haulout", sim::name_of(lease));
    });
  });
  after(3min + 2s, [&] { before = evictions(); });
  after(10min, [&] {
    EXPECT_GE(before, 4u);
    EXPECT_EQ(evictions(), before) << story();
    EXPECT_EQ(state("n1"), "draining");
    cluster.permit("patch", "nodes");
  });
  run_fleet();
  expect_updated(*machines[0]);
}

// One refusal proves nothing: it may follow a reconnect. The agent reports the second one on the machine, because it
// cannot write it on the Node.
TEST_F(Unwritten, OneRefusalIsNotTold) {
  EXPECT_EQ(troubles_told_of(1), 0);
}
TEST_F(Unwritten, TheSecondRefusalIsTold) {
  EXPECT_EQ(troubles_told_of(2), 1);
}

// The first write that succeeds ends the failure. The agent then writes heartbeats again while nothing else changes.
TEST_F(Unwritten, TheHeartbeatGoesOnAfterAWriteThatFailedForAWhile) {
  machine("n1", {.methods = {}});
  refuse_writes_in("draining");
  after(10min, [&] { cluster.permit("patch", "nodes"); });
  expect_heartbeats();
}

// The server carries out the last write, but its response is lost. The watch shows the result.
TEST_F(Unwritten, TheHeartbeatGoesOnAfterAWriteWhoseAnswerWasLost) {
  Machine& n1 = machine("n1", {.methods = {}});
  bool broken = false;
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource != "nodes" || state("n1") != "ready" || std::exchange(broken, true)) return;
    for (const sim::FaultKind kind : {sim::FaultKind::reset_before, sim::FaultKind::reset_after})
      faults.add({.verb = "patch", .resource = "nodes", .count = 1, .fault = {.kind = kind}});
  });
  std::vector<std::string> told;
  n1.on_told = [&](const agent::Status& status) { told.push_back(status.reason); };
  expect_heartbeats();
  EXPECT_EQ(faults.struck().size(), 2u) << story();
  EXPECT_EQ(std::count(told.begin(), told.end(), "ApiUnavailable"), 1) << story();
}

// A person runs `haulout uncordon` while no agent runs. It removes the mark, too, which kubectl would leave. The next
// agent must not cordon the node at once.
TEST_F(Unwritten, P5_WhatIsUncordonedWhileNoAgentRunsIsNotCordonedAtOnce) {
  Machine& n1 = machine("n1");
  PodSpec slow;
  slow.grace = 600;
  add(a_pod("slow-0", slow));
  after(1min, [&] {
    EXPECT_EQ(state("n1"), "draining");
    n1.kill_agent();
    uncordon("n1");
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"haulout.dev/cordon", nullptr}}}}}});
  });
  after(2min, [&] {
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_FALSE(unschedulable("n1"));
  });
  run_fleet();
  expect_updated(n1);
}

TEST_F(Unwritten, P10_AnAgentContinuesAfterARestoredEtcd) {
  Machine& n1 = machine("n1", {.target = ""});
  restore_an_old_etcd();
  std::size_t before = 0;
  after(4min, [&] {
    before = n1.requests();
    n1.want("1.1");
  });
  after(64min, [&] { EXPECT_LE(n1.requests() - before, 200u) << story(); });
  run_fleet();
  expect_updated(n1);
}

// After the restore, the agent writes nothing. So only the watch can show it a person's request.
TEST_F(Unwritten, AfterARestoreTheNodeIsStillListenedTo) {
  Machine& n1 = machine("n1", {.target = ""});
  restore_an_old_etcd();
  after(5min, [&] {
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"haulout.dev/request", "reboot"}}}}}});
  });
  run_fleet();
  EXPECT_EQ(n1.boots(), 1u) << story();
}

}  // namespace
}  // namespace haulout::fleet
