// Nodes that cannot be written, or whose numbers go back.
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;

struct Unwritten : Fleet {
  // The API server refuses it from the moment at which the Node says `state`.
  void refuse_writes_in(const std::string& wanted) {
    cluster.on_change([this, wanted](const sim::Change& change) {
      if (refused_ || change.key.resource != "nodes" || state("n1") != wanted) return;
      refused_ = true;
      cluster.forbid("patch", "nodes");
    });
  }
  std::size_t evictions() const {
    const auto& audit = cluster.audit();
    return static_cast<std::size_t>(
        std::count_if(audit.begin(), audit.end(), [](const auto& entry) { return entry.subresource == "eviction"; }));
  }

  // After three minutes: the state of two minutes before, four hundred revisions ago.
  void restore_an_old_etcd() {
    after(1min, [this] { backup_ = cluster.revision(); });
    after(2min, [this] {
      for (int i = 0; i < 400; ++i)
        cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"noise", std::to_string(i)}}}}}});
    });
    after(3min, [this] { cluster.restore_etcd(backup_); });
  }

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

// The trouble is over with the first write that succeeds, and the node is heard of again while nothing else is written.
TEST_F(Unwritten, TheHeartbeatGoesOnAfterAWriteThatFailedForAWhile) {
  machine("n1", {.methods = {}});
  refuse_writes_in("draining");
  after(10min, [&] { cluster.permit("patch", "nodes"); });
  const auto heard_at = [this] {
    return sim::text(sim::condition(node("n1"), "HauloutMaintenance"), "/lastHeartbeatTime");
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

// 'haulout uncordon' takes field and mark; kubectl leaves the mark.
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

TEST_F(Unwritten, P10_AnEtcdFromABackupStopsNobody) {
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

// Nothing is written meanwhile: the pause is seen by the watch alone.
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
