// Regression tests for bugs that other reboot agents have, or that an earlier version of this agent had.
#include "agent/slots/none_slots.hpp"
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Defects : Fleet {
  void web(int replicas) { add(a_workload("Deployment", "web", replicas, {{"terminationGracePeriodSeconds", 5}})); }
  void request_reboot(const std::string& name) {
    cluster.patch("nodes", "", name, {{"metadata", {{"annotations", {{"haulout.dev/request", "reboot"}}}}}});
  }
};

// The agent restarts with another kind of slots (--slots) while its node holds a slot. If the agent forgot that slot,
// it would stay taken forever, and the pool would wait.
TEST_F(Defects, ATurnIsNotForgottenWhenTurnsAreTakenElsewhereFromNowOn) {
  bool elsewhere = false;
  decorate_slots = [&](agent::Slots&) {
    return elsewhere ? std::make_unique<agent::NoneSlots>(clock) : std::unique_ptr<agent::NoneSlots>();
  };
  Machine& n1 = machine("n1", {.methods = {}});
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    elsewhere = true;
    n1.want("");
    n1.kill_agent();
  });
  after(20min, [&] {
    EXPECT_EQ(slots_held(), 1u) << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "CannotRelease");
    EXPECT_FALSE(unschedulable("n1"));
    elsewhere = false;
    n1.kill_agent();
  });
  after(25min, [&] {
    EXPECT_EQ(slots_held(), 0u) << story();
    EXPECT_EQ(state("n1"), "idle");
  });
  run_for(26min);
}

// The node keeps its slot whatever the operating system wants by then. Other nodes may still want the version that
// failed, and only this slot keeps them from updating to it.
TEST(Defects_RolledBack, ANodeKeepsItsTurnUntilAPersonSaysThatItGoesOn) {
  struct TwoNodes : Defects {
    void TestBody() override {}
    void go(const char* wanted_later) {
      Machine& n1 = machine("n1", {.rolls_back = true});
      Machine& n2 = machine("n2", {.target = ""});
      after(10min, [&] { n2.want("1.1"); });
      after(20min, [&] { n1.want(wanted_later); });
      after(12h, [&] {
        EXPECT_EQ(state("n1"), "degraded") << story();
        EXPECT_EQ(label("n1", "haulout.dev/reason"), "RolledBack");
        EXPECT_EQ(n1.boots(), 1u);
        EXPECT_EQ(n2.boots(), 0u);
        n1.plan().rolls_back = false;
        request_reboot("n1");
      });
      run_fleet(14h);
      EXPECT_EQ(n1.version(), *wanted_later ? wanted_later : "1.0") << story();
      EXPECT_EQ(state("n1"), "idle");
      expect_updated(n2);
      EXPECT_EQ(slots_held(), 0u);
    }
  };
  for (const char* wanted_later : {"1.2", ""}) {
    SCOPED_TRACE(*wanted_later ? "a newer version" : "nothing any more");
    TwoNodes().go(wanted_later);
  }
}

// The kubelet registers its Node again while the agent keeps running, as on bare metal.
TEST_F(Defects, ANodeThatIsMadeAnewUnderALivingAgent) {
  Machine& n1 = machine("n1", {.target = ""});
  after(1min, [&] { checks.by_a_person([&] { cluster.replace_node("n1"); }); });
  after(2min, [&] { n1.want("1.1"); });
  run_fleet(1h);
  expect_updated(n1);
}

// The request asks for one reboot only. If the agent did not give up, it would drain the node again and again for
// nothing.
TEST_F(Defects, ARequestedRebootThatNeverHappensIsGivenUp) {
  Machine& n1 = machine("n1", {.target = "", .ignored_reboots = 99});
  machine("n2", {.target = ""});
  web(2);
  after(1min, [&] { request_reboot("n1"); });
  run_for(6h);
  EXPECT_THAT(n1.asked, ElementsAre("logind", "systemd")) << story();
  EXPECT_EQ(state("n1"), "degraded");
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "RebootFailed");
  EXPECT_FALSE(unschedulable("n1"));
}

// A person uncordons the node after the agent has proved that it may be rebooted. The agent learns of it from the
// watch, and does not request the reboot.
TEST_F(Defects, ANodeThatIsUncordonedBetweenTheProofAndTheRequestIsNotRebooted) {
  Machine& n1 = machine("n1");
  bool done = false;
  n1.on_marks = [&] {
    if (!std::exchange(done, true)) uncordon("n1");
  };
  after(2min, [&] {
    EXPECT_TRUE(done) << story();
    EXPECT_THAT(n1.asked, ::testing::IsEmpty());
    EXPECT_EQ(state("n1"), "pending") << story();
  });
  run_fleet();
  expect_updated(n1);
}

TEST_F(Defects, ARequestedRebootThatFailedIsTriedAgainWhenItIsRequestedAgain) {
  Machine& n1 = machine("n1", {.target = "", .ignored_reboots = 2});
  after(1min, [&] { request_reboot("n1"); });
  after(1h, [&] { request_reboot("n1"); });
  run_fleet();
  EXPECT_EQ(n1.boots(), 1u) << story();
  EXPECT_EQ(state("n1"), "idle");
}

// A person sees that neither method works, and configures another method before the limit of the second one is over.
// The agent must try the new method.
TEST_F(Defects, AWayToRebootThatIsConfiguredMeanwhileIsTried) {
  Machine& n1 = machine("n1", {.ignored_reboots = 99});
  after(15min, [&] {
    EXPECT_THAT(n1.asked, ElementsAre("logind", "systemd")) << story();
    n1.plan().methods = {"command"};
    n1.plan().ignored_reboots = 0;
    n1.kill_agent();
  });
  run_fleet();
  EXPECT_THAT(n1.asked, ElementsAre("logind", "systemd", "command")) << story();
  EXPECT_THAT(states_of("n1"), Not(Contains("degraded")));
  expect_updated(n1);
}

TEST_F(Defects, AWayThatIsConfiguredMeanwhileHasItsOwnTime) {
  Machine& n1 = machine("n1", {.ignored_reboots = 99});
  after(19min, [&] {
    n1.plan().methods = {"command"};
    n1.kill_agent();
  });
  after(28min, [&] { EXPECT_EQ(state("n1"), "rebooting") << story(); });
  run_fleet();
  EXPECT_THAT(n1.asked, ElementsAre("logind", "systemd", "command")) << story();
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "RebootFailed");
}

TEST_F(Defects, ANodeThatOthersAreToRebootFromNowOnIsReadyForThem) {
  Machine& n1 = machine("n1", {.ignored_reboots = 99});
  after(15min, [&] {
    n1.plan().methods = {};
    n1.kill_agent();
  });
  after(1h, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    EXPECT_TRUE(n1.shows_ready());
    n1.power_cycle();
  });
  run_fleet();
  EXPECT_THAT(states_of("n1"), Not(Contains("degraded")));
  expect_updated(n1);
}

TEST_F(Defects, APersonMayHaveARolledBackUpdateTriedAgain) {
  Machine& n1 = machine("n1", {.rolls_back = true});
  after(1h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    n1.plan().rolls_back = false;
    request_reboot("n1");
  });
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(slots_held(), 0u);
}

// While the agent cannot prove that the node is ready, it does not request the reboot. So no request has failed.
TEST_F(Defects, AnApiServerThatIsAwayForAnHourWhenTheRebootIsDue) {
  for (const Duration from : {0ms, 1ms, 3ms, 6ms, 10ms, 15ms, 20ms, 30ms}) {
    struct OneNode : Defects {
      void TestBody() override {}
      void go(const std::string& in, Duration from) {
        Machine& n1 = machine("n1");
        bool seen = false;
        cluster.on_change([&](const sim::Change& change) {
          if (seen || change.key.name != "n1" || state("n1") != in) return;
          seen = true;
          cluster.after(from, [&] { cluster.restart(1h); });
        });
        run_fleet();
        EXPECT_TRUE(seen);
        expect_updated(n1);
        EXPECT_EQ(n1.boots(), 1u);
        EXPECT_LE(n1.asked.size(), 1u) << story();
      }
    };
    for (const char* in : {"ready", "rebooting"}) OneNode().go(in, from);
    if (HasFailure()) return;
  }
}

// A person removes the record while the agent's cordon is in force. The agent recognizes its cordon by the mark, and
// uncordons the node.
TEST_F(Defects, ARecordThatSomebodyTookAway) {
  Machine& n1 = machine("n1");
  PodSpec held;
  held.labels = {{"app", "held"}};
  add(a_pod("held-0", held));
  add(a_budget("held", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
  after(1min, [&] {
    EXPECT_TRUE(unschedulable("n1"));
    n1.want("");
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"haulout.dev/record", nullptr}}}}}});
  });
  run_fleet();
  EXPECT_EQ(state("n1"), "idle") << story();
  EXPECT_FALSE(unschedulable("n1")) << story();
  EXPECT_EQ(slots_held(), 0u);
}

TEST_F(Defects, ATurnThatNobodyCanReadAboutIsNotAskedForAllTheTime) {
  limit = 2;
  Machine& n1 = machine("n1");
  PodSpec held;
  held.labels = {{"app", "held"}};
  add(a_pod("held-0", held));
  add(a_budget("held", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
  std::size_t before = 0;
  after(1min, [&] {
    cluster.forbid("list", "leases");
    add({{"apiVersion", "coordination.k8s.io/v1"},
         {"kind", "Lease"},
         {"metadata",
          {{"name", "haulout-default-1"}, {"namespace", "haulout"}, {"labels", {{"haulout.dev/pool", "default"}}}}},
         {"spec", {{"holderIdentity", "n9/n9-uid"}}}});
    before = n1.requests();
  });
  after(11min, [&] { EXPECT_LT(n1.requests() - before, 150u); });
  run_for(12min);
}

// When the Node is deleted, the machine has no slot any more. So the agent removes the ready file, and no other tool
// reboots the machine.
TEST_F(Defects, TheReadyFileGoesWithTheNode) {
  Machine& n1 = machine("n1", {.methods = {}});
  after(5min, [&] {
    EXPECT_TRUE(n1.shows_ready()) << story();
    checks.by_a_person([&] { cluster.remove("nodes", "", "n1"); });
  });
  after(5min + 1s, [&] { EXPECT_FALSE(n1.shows_ready()) << story(); });
  // The API server answers, so the agent does not report `ApiUnavailable`.
  after(6min, [&] {
    EXPECT_EQ(n1.status().reason, "NodeMissing");
    EXPECT_THAT(n1.status().message, ::testing::HasSubstr("no Node n1"));
  });
  run_for(10min);
}

// A reboot that was never requested is not overdue, however long the API server and the agent were unavailable.
TEST_F(Defects, ARestartedAgentAsksForTheRebootThatIsOverdue) {
  Machine& n1 = machine("n1", {.methods = {"logind"}});
  bool seen = false;
  cluster.on_change([&](const sim::Change& change) {
    if (seen || change.key.name != "n1" || state("n1") != "rebooting") return;
    seen = true;
    cluster.after(0s, [&] { cluster.restart(1h); });
    cluster.after(30min, [&] { n1.kill_agent(); });
  });
  run_fleet();
  EXPECT_TRUE(seen);
  expect_updated(n1);
  EXPECT_THAT(n1.asked, ElementsAre("logind"));
  EXPECT_THAT(states_of("n1"), Not(Contains("degraded"))) << story();
}

// An attempt fails while the machine's clock is a month ahead. The backoff must not last a month.
TEST_F(Defects, ABackoffEndsThoughTheClockWasFarAhead) {
  options.drain.timeout = 2min;
  Machine& n1 = machine("n1");
  PodSpec held;
  held.labels = {{"app", "held"}};
  add(a_pod("held-0", held));
  add(a_budget("held", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
  after(5s, [&] { clock.shift_wall(30 * 24h); });
  after(4min, [&] {
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "BackingOff") << story();
    clock.shift_wall(-30 * 24h);
    n1.kill_agent();
    cluster.remove("poddisruptionbudgets", "shop", "held");
  });
  run_fleet(4h);
  expect_updated(n1);
}

// The node goes down right before the agent uncordons it. The system that then boots has not been verified, so the
// agent verifies it before it uncordons the node.
TEST_F(Defects, ANodeThatGoesDownRightAfterItsVerificationIsVerifiedAgain) {
  Machine& n1 = machine("n1");
  bool seen = false;
  cluster.on_change([&](const sim::Change& change) {
    if (seen || change.key.name != "n1" || state("n1") != "uncordoning") return;
    seen = true;
    cluster.after(0s, [&] {
      cluster.restart(4min);
      n1.plan().version = "1.0";
      n1.plan().rolls_back = true;
      n1.power_cycle();
    });
  });
  run_for(1h);
  EXPECT_TRUE(seen);
  EXPECT_EQ(state("n1"), "degraded") << story();
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "RolledBack");
  EXPECT_EQ(n1.boots(), 2u) << story();
  EXPECT_EQ(slots_held(), 1u);
}

// Refuses each request that includes a node in load balancers again with 409, as if another client had changed the Node
// first. Stops refusing 20 s after the first such request.
class Conflicts final : public http::Transport {
 public:
  Conflicts(sim::TestCluster& cluster, Clock& clock) : cluster_(cluster), clock_(clock) {}
  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    const bool ours = request.method == "PATCH" &&
                      request.body.find("exclude-from-external-load-balancers") != std::string::npos &&
                      request.body.find("null") != std::string::npos;
    if (ours && began_ == TimePoint()) began_ = clock_.now();
    if (!ours || clock_.now() > began_ + 20s)
      co_return co_await cluster_.api().round_trip(std::move(request), deadline);
    ++refused;
    http::Response response;
    response.status = 409;
    response.body = R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409})";
    co_return response;
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override {
    co_return co_await cluster_.api().open(std::move(request), deadline);
  }
  std::size_t refused = 0;

 private:
  sim::TestCluster& cluster_;
  Clock& clock_;
  TimePoint began_{};
};

// After each conflict the agent tries again, but not at once.
TEST_F(Defects, ConflictsAreNotAnsweredWithAStorm) {
  Conflicts conflicts(cluster, clock);
  way = [&] { return &conflicts; };
  options.lb_drain_wait = 5s;
  Machine& n1 = machine("n1");
  run_fleet(1h);
  expect_updated(n1);
  EXPECT_GT(conflicts.refused, 1u);
  EXPECT_LT(conflicts.refused, 60u);
}

}  // namespace
}  // namespace haulout::fleet
