// Nodes that are ready or in the middle of a drain while the agent cannot read what proves that they may be rebooted.
// Also tests what the agent decides while such a proof is in progress.
#include "tests/fleet/gated_fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Unproved : GatedFleet {
  Unproved() {
    way = [this] { return &faults; };
  }
  using Fleet::checks;
  using Fleet::cluster;
  using Fleet::uncordon;
  void fail_from(Duration from, const char* verb, const char* resource, const sim::Fault& fault) {
    faults.add({.verb = verb, .resource = resource, .from = clock.now() + from, .fault = fault});
  }
  void a_late_pod() {
    PodSpec late;
    late.spec = {{"tolerations", {{{"operator", "Exists"}}}}};
    add(a_pod("late-0", late));
  }
  void take_turns_away() {
    checks.by_a_person([&] {
      for (const Json& lease : cluster.all("leases")) cluster.remove("leases", "haulout", sim::name_of(lease));
    });
  }
  // Changes an annotation that has no meaning. The watch event of the Node makes the agent prove `ready` again.
  void noise() { annotate("noise", "1"); }

  sim::FaultTransport faults{cluster.api(), clock, world_rng};
};

struct Loss {
  const char* what;
  std::function<void(Unproved&)> happens;
  bool of_drain = true;
  bool of_ready = true;
};
const Loss losses[] = {
    {"the cordon", [](Unproved& fleet) { fleet.uncordon("n1"); }},
    {"the emptiness", [](Unproved& fleet) { fleet.a_late_pod(); }, false},
    {"a pause of the cluster", [](Unproved& fleet) { fleet.pause_cluster("freeze"); }},
    {"a pause of the node", [](Unproved& fleet) { fleet.annotate("haulout.dev/pause", "; disk swap"); }},
    {"the node", [](Unproved& fleet) { fleet.checks.by_a_person([&] { fleet.cluster.remove("nodes", "", "n1"); }); }},
    {"the record", [](Unproved& fleet) { fleet.annotate("haulout.dev/record", nullptr); }, true, false},
};
struct Silence {
  const char* what;
  const char* verb;
  const char* resource;
  sim::Fault fault;
  bool of_turn = false;
};
const Silence silences[] = {
    {"turns are refused", "list", "leases", {.kind = sim::FaultKind::server_error, .code = 403}, true},
    {"the lock server is overrun", "list", "leases", {.kind = sim::FaultKind::throttle, .retry_after = "60"}, true},
    {"the lock server hangs", "list", "leases", {.kind = sim::FaultKind::stall}, true},
    {"the Node cannot be read", "get", "nodes", {.kind = sim::FaultKind::server_error}},
    {"pods cannot be listed", "list", "pods", {.kind = sim::FaultKind::stall}},
};

// `ready` needs the slot, the cordon and a node without pods that must leave. If the agent cannot read one of them, it
// does not withdraw `ready`. If it knows that one of them is lost, it withdraws `ready`, whatever else it cannot read
// or is waiting for at that moment.
TEST(P3_ReadyIsWithdrawn, WhenAnyOfItIsLostThoughNobodyCanProveTheRest) {
  struct OneNode : Unproved {
    void TestBody() override {}
    void go(const Silence& silence, const Loss& loss) {
      Machine& n1 = machine("n1", {.methods = {}});
      fail_from(4min, silence.verb, silence.resource, silence.fault);
      after(5min, [&] { noise(); });
      after(5min + 10s, [&] {
        EXPECT_EQ(state("n1"), "ready") << story();
        EXPECT_TRUE(n1.shows_ready()) << story();
        loss.happens(*this);
      });
      after(5min + 11s, [&] { EXPECT_FALSE(n1.shows_ready()) << story(); });
      after(6min + 30s, [&] {
        EXPECT_FALSE(n1.shows_ready()) << story();
        if (!node("n1").is_null()) EXPECT_NE(state("n1"), "ready") << story();
      });
      run_for(7min);
    }
  };
  for (const Silence& silence : silences)
    for (const Loss& loss : losses) {
      if (!loss.of_ready) continue;
      SCOPED_TRACE(std::string(silence.what) + ", lost: " + loss.what);
      OneNode().go(silence, loss);
      if (::testing::Test::HasFailure()) return;
    }
}

// P8: an agent that restarts in the middle of a drain checks whether it still has its slot. It reports that it gets no
// answer, and meanwhile reacts to everything that ends a drain.
TEST(P8_NeverSilentlyStuck, ADrainThatIsGoneOnWithEndsThoughNobodyKnowsOfItsTurn) {
  struct OneNode : Unproved {
    void TestBody() override {}
    void go(const Silence& silence, const Loss& loss) {
      Machine& n1 = machine("n1");
      held_pod();
      fail_from(2min, silence.verb, silence.resource, silence.fault);
      after(2min, [&] {
        EXPECT_EQ(state("n1"), "draining") << story();
        n1.kill_agent();
      });
      after(4min, [&] {
        EXPECT_EQ(state("n1"), "draining") << story();
        EXPECT_EQ(label("n1", "haulout.dev/reason"), "SlotsUnavailable") << story();
        loss.happens(*this);
      });
      after(4min + 35s, [&] {
        if (node("n1").is_null()) {
          EXPECT_EQ(n1.status().reason, "NodeMissing") << story();
        } else {
          EXPECT_NE(state("n1"), "draining") << story();
          EXPECT_FALSE(unschedulable("n1")) << story();
        }
      });
      run_for(5min);
    }
  };
  for (const Silence& silence : silences)
    for (const Loss& loss : losses) {
      if (!silence.of_turn || !loss.of_drain) continue;
      SCOPED_TRACE(std::string(silence.what) + ", lost: " + loss.what);
      OneNode().go(silence, loss);
      if (::testing::Test::HasFailure()) return;
    }
}

// The agent also reacts to an uncordon while it puts the update in place again, which may take an hour.
TEST_F(Unproved, WhoeverUncordonsWhileTheUpdateIsPutInPlaceOnceMoreIsHeeded) {
  Machine& n1 = machine("n1");
  held_pod();
  after(2min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    n1.plan().apply_takes = 1h;
    n1.kill_agent();
  });
  after(4min, [&] {
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "ApplyingUpdate") << story();
    uncordon("n1");
  });
  after(4min + 5s, [&] { EXPECT_EQ(state("n1"), "pending") << story(); });
  run_for(5min);
}

// The slot is lost while the agent lists the pods. The empty list that arrives later must not make the node `ready`
// again.
TEST(P3_ReadyIsWithdrawn, AProofThatEndsLaterDoesNotBringItBack) {
  struct OneNode : Unproved {
    void TestBody() override {}
    void go(bool others_reboot) {
      Machine& n1 = machine("n1", others_reboot ? MachinePlan{.methods = {}} : MachinePlan{});
      std::size_t shown = 0;
      n1.on_ready = [&] { ++shown; };
      // The block keeps the node in `ready`.
      if (!others_reboot) after(1s, [&] { n1.block("apt"); });
      fail_from(4min, "list", "pods", {.kind = sim::FaultKind::slow, .delay = 5s});
      after(5min, [&] {
        EXPECT_TRUE(n1.shows_ready()) << story();
        EXPECT_EQ(shown, 1u);
        noise();
      });
      after(5min + 1s, [&] {
        n1.block("");
        take_turns_away();
      });
      after(5min + 2s, [&] { EXPECT_FALSE(n1.shows_ready()) << story(); });
      after(5min + 8s, [&] {
        EXPECT_EQ(shown, 1u) << story();
        EXPECT_THAT(states_of("n1"), Contains("pending"));
        EXPECT_THAT(states_of("n1"), Not(Contains("rebooting"))) << story();
      });
      run_for(6min);
    }
  };
  for (const bool others_reboot : {true, false}) {
    SCOPED_TRACE(others_reboot ? "others reboot" : "it reboots itself");
    OneNode().go(others_reboot);
  }
}

// The agent cannot read whether it still has its slot. It takes back the update all the same, and does not request the
// reboot.
TEST_F(Unproved, ANodeThatIsUncordonedBeforeItsRebootGoesBackThoughItsTurnCannotBeConfirmed) {
  Machine& n1 = machine("n1");
  bool seen = false;
  cluster.on_change([&](const sim::Change& change) {
    if (seen || change.key.resource != "nodes" || state("n1") != "rebooting") return;
    seen = true;
    fail_from(0s, "list", "leases", {.kind = sim::FaultKind::server_error});
    cluster.after(0s, [&] { uncordon("n1"); });
  });
  after(10min, [&] {
    EXPECT_TRUE(seen);
    EXPECT_EQ(n1.boots(), 0u);
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_THAT(message(), HasSubstr("slot cannot be released"));
  });
  run_for(10min);
}

// P6: the Node is deleted and created again while the agent makes its last proof. The new Node has no slot, and nothing
// has checked its pods.
TEST_F(Unproved, ANodeThatIsMadeAnewDuringItsLastProofIsNotRebooted) {
  Machine& n1 = machine("n1");
  bool seen = false;
  cluster.on_change([&](const sim::Change& change) {
    if (seen || change.key.resource != "nodes" || state("n1") != "rebooting") return;
    seen = true;
    faults.add({.verb = "list",
                .resource = "pods",
                .until = clock.now() + 2s,
                .fault = {.kind = sim::FaultKind::slow, .delay = 5s}});
    cluster.after(1s, [&] { checks.by_a_person([&] { cluster.replace_node("n1"); }); });
    cluster.after(6s, [&] { EXPECT_THAT(n1.asked, IsEmpty()) << story(); });
  });
  run_fleet();
  EXPECT_TRUE(seen);
  expect_updated(n1);
}

// Watch events of the Node are a reason for a new proof, but not a reason to ask a server before its Retry-After is
// over.
TEST_F(Unproved, P10_AWatchEventCausesNoRequestBeforeRetryAfter) {
  machine("n1", {.methods = {}});
  fail_from(5min, "list", "leases", {.kind = sim::FaultKind::throttle, .retry_after = "60"});
  for (int i = 0; i < 18; ++i) after(5min + i * 3s, [this, i] { annotate("noise", std::to_string(i)); });
  after(5min + 55s, [this] { EXPECT_EQ(std::ranges::count(faults.struck(), "throttle list leases"), 1) << story(); });
  run_for(6min);
}

}  // namespace
}  // namespace haulout::fleet
