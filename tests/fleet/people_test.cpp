// Actions of people during an update.
#include "drain/cordon.hpp"
#include "k8s/codec.hpp"
#include "tests/fleet/fleet.hpp"
#include "tests/fleet/scripted_gates.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct People : Fleet {
  void held_pod() {
    PodSpec held;
    held.labels = {{"app", "held"}};
    add(a_pod("held-0", held));
    add(a_budget("held", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
  }
  void release_pod() { cluster.remove("poddisruptionbudgets", "shop", "held"); }
  void request(const Json& value) {
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"haulout.dev/request", value}}}}}});
  }
  void request_at(WallTime time) { request("reboot at " + k8s::format_time(time) + "; new disk"); }
  void request_reboot() { request("reboot"); }
  bool requested() const { return node("n1")["metadata"]["annotations"].contains("haulout.dev/request"); }
  // Keeps every gate closed for this time.
  void open_gates_after(Duration closed) {
    gates = [this, opens = clock.now() + closed](k8s::Client&, const std::string&) {
      return std::make_unique<ScriptedGates>(clock, [this, opens](const agent::GateQuestion&) {
        if (clock.now() >= opens) return agent::GateAnswer{};
        return agent::GateAnswer{{{.name = "window",
                                   .verdict = agent::Gate::Verdict::closed,
                                   .reason = "OutsideWindow",
                                   .message = "not yet"}}};
      });
    };
  }
};

// P5: the agent does not take back a person's cordon.
TEST_F(People, AHumansCordonSurvivesTheUpdate) {
  Machine& n1 = machine("n1");
  cordon("n1");
  run_fleet();
  EXPECT_EQ(n1.version(), "1.1") << story();
  EXPECT_EQ(state("n1"), "idle");
  EXPECT_TRUE(unschedulable("n1"));
}

// If a person's cordon stays, the agent must not report that the node takes pods again.
TEST(People_Cordons, AVerifiedNodeSaysWhoseCordonItKeeps) {
  struct OneRun : People {
    void TestBody() override {}
    enum class By { nobody, kubectl, somebody, haulout };
    void set_by(By whom) {
      Json annotations = Json::object();
      if (whom == By::haulout)
        annotations[std::string(drain::cordon_annotation)] =
            drain::encode_mark({"run", "jane@laptop", clock.wall_now()});
      const Json changed = {{"spec", {{"unschedulable", true}}}, {"metadata", {{"annotations", annotations}}}};
      checks.by_a_person([&] {
        if (whom == By::kubectl) return cluster.cordon("n1");
        if (whom != By::nobody) cluster.patch("nodes", "", "n1", changed);
      });
    }
    void play(By whom, const std::string& words) {
      Machine& n1 = machine("n1");
      set_by(whom);
      std::vector<std::string> told;
      n1.on_told = [&](const agent::Status& now) {
        if (now.state != agent::State::uncordoning) return;
        told.push_back(now.message);
        EXPECT_EQ(sim::annotation(node("n1"), "haulout.dev/message"), now.message);
      };
      run_fleet();
      EXPECT_EQ(n1.version(), "1.1") << story();
      EXPECT_THAT(told, ElementsAre(words)) << story();
      EXPECT_EQ(unschedulable("n1"), whom != By::nobody) << story();
    }
  };
  using By = OneRun::By;
  OneRun().play(By::nobody, "");
  OneRun().play(By::kubectl, "verification passed; the node stays cordoned with kubectl");
  OneRun().play(By::somebody, "verification passed; the node stays cordoned");
  OneRun().play(By::haulout, "verification passed; the node stays cordoned by jane@laptop");
}

TEST_F(People, AHumansCordonSurvivesAFailure) {
  machine("n1", {.ignored_reboots = 9});
  cordon("n1");
  run_fleet(3h);
  EXPECT_EQ(state("n1"), "degraded");
  EXPECT_TRUE(unschedulable("n1"));
}

TEST_F(People, UncordoningADrainingNodeIsRespectedForAWhile) {
  Machine& n1 = machine("n1");
  held_pod();
  after(1min, [&] { uncordon("n1"); });
  after(2min, [&] {
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_FALSE(unschedulable("n1"));
    EXPECT_EQ(slots_held(), 0u);
    release_pod();
  });
  run_fleet();
  expect_updated(n1);
}

// A person uncordons a ready node. In each case the agent gives its slot back and begins again only after a while:
// `kubectl uncordon` leaves the agent's mark on the Node, `haulout uncordon` removes it, and the agent may be down
// meanwhile.
TEST_F(People, UncordoningAReadyNodeIsRespectedForAWhile) {
  struct OneRun : People {
    void TestBody() override {}
    void play(bool mark_too, bool agent_is_away) {
      Machine& n1 = machine("n1", {.methods = {}});
      after(5min, [&, mark_too, agent_is_away] {
        EXPECT_EQ(state("n1"), "ready") << story();
        if (agent_is_away) n1.kill_agent();
        uncordon("n1");
        if (mark_too)
          cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"haulout.dev/cordon", nullptr}}}}}});
      });
      after(6min, [&] {
        EXPECT_EQ(state("n1"), "pending") << story();
        EXPECT_EQ(label("n1", "haulout.dev/reason"), "BackingOff");
        EXPECT_FALSE(unschedulable("n1"));
        EXPECT_EQ(slots_held(), 0u);
      });
      after(20min, [&] {
        EXPECT_EQ(state("n1"), "ready") << story();
        n1.power_cycle();
      });
      run_fleet();
      expect_updated(n1);
    }
  };
  for (const bool mark_too : {false, true})
    for (const bool agent_is_away : {false, true}) {
      SCOPED_TRACE((mark_too ? "with its mark" : "without its mark") + std::string(agent_is_away ? ", away" : ""));
      OneRun().play(mark_too, agent_is_away);
    }
}

// Another tool or a person reboots the node. The agent shows `ready` until then, and withdraws it when it is no longer
// true.
TEST_F(People, ReadyIsKeptForWhoeverReboots) {
  Machine& n1 = machine("n1", {.methods = {}});
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    EXPECT_TRUE(n1.shows_ready());
    PodSpec late;
    late.spec = {{"tolerations", {{{"operator", "Exists"}}}}};
    add(a_pod("late-0", late));
  });
  after(5min + 2s, [&] {
    EXPECT_NE(state("n1"), "ready") << story();
    EXPECT_FALSE(n1.shows_ready());
  });
  after(10min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    n1.power_cycle();
  });
  run_fleet();
  expect_updated(n1);
}

// A pod that the drain skips because of a label is skipped only as long as it has the label.
TEST_F(People, APodThatLosesTheLabelByWhichItStaysLeavesAReadyNode) {
  options.drain.policy.leave = {*k8s::parse_label_selector("app=stays")};
  Machine& n1 = machine("n1", {.methods = {}});
  PodSpec labelled;
  labelled.labels = {{"app", "stays"}};
  for (const char* name : {"stays-0", "stays-1"}) add(a_pod(name, labelled));
  after(10min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    cluster.patch("pods", "shop", "stays-0", {{"metadata", {{"labels", {{"app", "leaves"}}}}}});
  });
  after(15min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    EXPECT_EQ(checks.evictions, 1u);
    n1.kill_agent();
  });
  after(20min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    cluster.patch("pods", "shop", "stays-1", {{"metadata", {{"labels", {{"app", "leaves"}}}}}});
  });
  run_for(25min);
  EXPECT_EQ(state("n1"), "ready") << story();
  EXPECT_EQ(checks.evictions, 2u);
}

// A part of a training run, which stops as a whole, is on the node. It ends after forty minutes.
TEST_F(People, AnUpdateDoesNotStopATrainingRunIfTheOptionsForbidIt) {
  struct Row {
    drain::Treatment gangs;
    const char* state;   // of the node while the run goes on
    const char* reason;  // of the node
  };
  struct OneRun : People {
    void TestBody() override {}
    void play(const Row& row) {
      options.drain.policy.gangs = row.gangs;
      Machine& n1 = machine("n1");
      PodSpec member;
      member.owner_kind = "Job";
      member.owner_api = "batch/v1";
      member.labels = {{"jobset.sigs.k8s.io/jobset-name", "train"}};
      add(a_pod("train-0", member));
      after(20min, [&] {
        EXPECT_EQ(state("n1"), row.state) << story();
        EXPECT_EQ(label("n1", "haulout.dev/reason"), row.reason) << story();
        EXPECT_THAT(sim::annotation(node("n1"), "haulout.dev/message"), HasSubstr("shop/train-0"));
        EXPECT_EQ(unschedulable("n1"), row.gangs == drain::Treatment::park);
      });
      after(40min, [&] { cluster.patch("pods", "shop", "train-0", {{"status", {{"phase", "Succeeded"}}}}); });
      run_fleet();
      expect_updated(n1);
      EXPECT_EQ(checks.evictions, 0u);
    }
  };
  OneRun().play({drain::Treatment::park, "draining", "WaitingForGang"});
  OneRun().play({drain::Treatment::refuse, "pending", "BackingOff"});
}

// The wait outlives the agent, and counts from the cordon, not from the start of the agent.
TEST_F(People, AnUpdateWaitsUntilTheWorkOnTheNodeHasEnded) {
  options.drain.policy.rules = {*drain::parse_pod_rule("app=long=wait-completed"),
                                *drain::parse_pod_rule("app=short=wait-completed=30m")};
  Machine& n1 = machine("n1");
  for (const char* app : {"long", "short"}) {
    PodSpec job;
    job.owner_kind = "Job";
    job.owner_api = "batch/v1";
    job.labels = {{"app", app}};
    add(a_pod(app, job));
  }
  after(20min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "WaitingForCompletion") << story();
    EXPECT_EQ(checks.evictions, 0u);
    n1.kill_agent();
  });
  after(40min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    EXPECT_EQ(checks.evictions, 1u) << "the limit has passed for one of them, half an hour after the cordon";
    cluster.patch("pods", "shop", "long", {{"status", {{"phase", "Succeeded"}}}});
  });
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(checks.evictions, 1u);
}

// If a pod is already terminating when the agent first sees it, the agent cannot know its phase before that. So the
// agent waits until the pod is deleted.
TEST_F(People, APodThatIsDeletedWhileNoAgentRunsIsWaitedForOnceItHasStopped) {
  options.drain.policy.unmanaged = drain::Treatment::skip;
  Machine& n1 = machine("n1", {.methods = {}});
  PodSpec bare;
  bare.owner_kind.clear();
  bare.grace = 120;
  bare.metadata = {{"finalizers", {"example.com/hold"}}};
  add(a_pod("bare-0", bare));
  after(10min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    n1.kill_agent();
    cluster.delete_gracefully("pods", "shop", "bare-0");
  });
  after(11min, [&] { EXPECT_EQ(state("n1"), "ready") << story(); });
  after(15min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    EXPECT_FALSE(n1.shows_ready());
    cluster.patch("pods", "shop", "bare-0", {{"metadata", {{"finalizers", nullptr}}}});
  });
  after(20min, [&] { EXPECT_EQ(state("n1"), "ready") << story(); });
  run_for(21min);
}

TEST_F(People, ARequestRebootsANodeThatNeedsNothing) {
  Machine& n1 = machine("n1", {.target = ""});
  after(5min, [&] {
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{"haulout.dev/request", "reboot"}}}}}});
  });
  after(10min, [] {});
  run_fleet(20min);
  EXPECT_EQ(n1.boots(), 1u) << story();
  EXPECT_EQ(state("n1"), "idle");
  EXPECT_FALSE(node("n1")["metadata"]["annotations"].contains("haulout.dev/request"));
}

// P8: a request that cannot be read is said to be so, once for each value, and shown while the node is idle.
TEST_F(People, ARequestThatCannotBeReadIsTold) {
  machine("n1", {.target = ""});
  const auto warnings = [this](const std::string& value) {
    return std::count_if(lines.begin(), lines.end(), [&value](const std::string& line) {
      return line.find("warns: RequestUnreadable") != line.npos && line.find('"' + value + '"') != line.npos;
    });
  };
  after(1min, [&] { request("rebot"); });
  after(30min, [&] {
    EXPECT_EQ(warnings("rebot"), 1) << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "RequestUnreadable");
    EXPECT_THAT(sim::annotation(node("n1"), "haulout.dev/message"), ::testing::HasSubstr("request-reboot n1"));
    request("reboot at noon");
  });
  after(31min, [&] {
    EXPECT_EQ(warnings("rebot"), 1) << story();
    EXPECT_EQ(warnings("reboot at noon"), 1) << story();
    request(nullptr);
  });
  after(32min, [&] {
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "");
    EXPECT_EQ(sim::annotation(node("n1"), "haulout.dev/message"), "");
  });
  run_for(40min);
  EXPECT_EQ(state("n1"), "idle") << story();
  EXPECT_EQ(machines[0]->boots(), 0u);
}

// The reason of a version that was rolled back stays, and the message has both.
TEST_F(People, ARequestThatCannotBeReadIsToldBesideARolledBackVersion) {
  Machine& n1 = machine("n1", {.rolls_back = true});
  after(1h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    n1.plan().rolls_back = false;
    n1.want("");
    request("reboot");
  });
  after(2h, [&] {
    EXPECT_EQ(state("n1"), "idle") << story();
    n1.want("1.1");
    request("rebot");
  });
  run_for(3h);
  EXPECT_EQ(state("n1"), "idle") << story();
  EXPECT_EQ(label("n1", "haulout.dev/reason"), "RolledBack");
  EXPECT_THAT(sim::annotation(node("n1"), "haulout.dev/message"),
              ::testing::AllOf(::testing::HasSubstr("version 1.1 was rolled back"), ::testing::HasSubstr("rebot"),
                               ::testing::HasSubstr("request-reboot n1")));
}

// A person reboots the machine while a reboot request waits for a gate. The request is served, whoever rebooted the
// machine.
TEST_F(People, APersonsRebootServesTheRequestThatWaits) {
  for (const bool alive : {true, false}) {
    struct OneRun : People {
      void TestBody() override {}
      void play(bool agent_is_alive) {
        Machine& n1 = machine("n1", {.target = ""});
        open_gates_after(20min);
        after(1min, [&] {
          if (!agent_is_alive) n1.kill_agent();
          request_reboot();
          if (!agent_is_alive) n1.power_cycle();
        });
        after(5min, [&] {
          EXPECT_EQ(state("n1"), agent_is_alive ? "pending" : "idle") << story();
          if (agent_is_alive) n1.power_cycle();
        });
        after(30min, [] {});
        run_fleet();
        EXPECT_EQ(n1.boots(), 1u) << story();
        EXPECT_EQ(state("n1"), "idle") << story();
        EXPECT_FALSE(requested());
      }
    } one;
    SCOPED_TRACE(alive ? "alive" : "killed");
    one.play(alive);
  }
}

// The node waits for a slot because of a requested reboot. When a person has rebooted the machine, it needs no slot any
// more.
TEST_F(People, APersonsRebootOfANodeInLineServesItsRequest) {
  add(a_node("forgotten"));
  cordon("forgotten");
  Machine& n1 = machine("n1", {.target = ""});
  after(1min, [&] { request_reboot(); });
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "waiting") << story();
    n1.power_cycle();
  });
  after(10min, [&] { uncordon("forgotten"); });
  after(20min, [] {});
  run_fleet();
  EXPECT_EQ(n1.boots(), 1u) << story();
  EXPECT_FALSE(requested());
  EXPECT_EQ(slots_held(), 0u);
}

// A need that the operating system reports is independent of a person's request.
TEST_F(People, APersonsRebootDoesNotEndANeedThatRemains) {
  Machine& n1 = machine("n1", {.target = "1.1", .rolls_back = true, .still_wanted = true});
  open_gates_after(20min);
  after(1min, [&] { request_reboot(); });
  after(5min, [&] { n1.power_cycle(); });
  after(10min, [&] {
    EXPECT_FALSE(requested()) << story();
    EXPECT_EQ(state("n1"), "pending") << story();
    n1.repair();
  });
  run_fleet();
  EXPECT_EQ(n1.boots(), 2u) << story();
  expect_updated(n1);
}

TEST_F(People, ARequestThatFollowsAPersonsRebootIsNotServedByIt) {
  Machine& n1 = machine("n1", {.target = ""});
  after(2min, [&] { n1.power_cycle(); });
  after(10min, [&] {
    n1.kill_agent();
    request_reboot();
  });
  after(20min, [] {});
  run_fleet();
  EXPECT_EQ(n1.boots(), 2u) << story();
  EXPECT_FALSE(requested());
}

// A person requests a reboot after a boot, of which the kubelet reports the new boot id only later. The agent has seen
// the Node without the request after the boot, so it knows that this boot does not serve the request.
TEST_F(People, ARequestAfterTheBootIsNotSatisfiedByThatBoot) {
  Machine& n1 = machine("n1", {.target = "", .delays_shutdown = 30s});
  // The machine boots, but its kubelet is down until the test brings it back.
  cluster.on_change([&, down = false](const sim::Change&) mutable {
    if (down || n1.boots() == 0) return;
    down = true;
    cluster.after(1ms, [&] { cluster.node_down("n1"); });
  });
  after(2min, [&] { n1.shut_down(); });
  after(10min, [&] { request_reboot(); });
  after(15min, [&] {
    EXPECT_TRUE(requested()) << story();
    cluster.node_up("n1", *n1.boot_id());
  });
  after(30min, [] {});
  run_fleet();
  EXPECT_EQ(n1.boots(), 2u) << story();
  EXPECT_FALSE(requested());
}

TEST_F(People, AnUpdateThatIsWithdrawnFreesEverything) {
  Machine& n1 = machine("n1", {.methods = {}});
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    n1.want("");
  });
  run_fleet();
  EXPECT_EQ(n1.boots(), 0u);
  EXPECT_EQ(state("n1"), "idle") << story();
  EXPECT_FALSE(unschedulable("n1"));
  EXPECT_FALSE(n1.shows_ready());
  EXPECT_EQ(slots_held(), 0u);
}

// P6: the limit is lowered from three to one during the updates. From then on a node begins its update only if the
// lower limit allows it.
TEST_F(People, ALimitThatIsLowered) {
  limit = 3;
  for (const char* name : {"n1", "n2", "n3", "n4", "n5"}) machine(name);
  after(2min, [&] { limit = 1; });
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
}

TEST_F(People, ANodeOutOfServiceTakesATurnAway) {
  add(a_node("forgotten"));
  cordon("forgotten");
  Machine& n1 = machine("n1");
  after(20min, [&] {
    EXPECT_EQ(state("n1"), "waiting") << story();
    uncordon("forgotten");
  });
  run_fleet();
  expect_updated(n1);
}

// A request for later: nothing happens before its time, and a boot before that does not serve it.
TEST_F(People, ARequestWaitsForItsTime) {
  Machine& n1 = machine("n1", {.target = ""});
  const WallTime at = std::chrono::floor<std::chrono::seconds>(clock.wall_now() + 6h);
  after(5min, [&] {
    EXPECT_EQ(state("n1"), "idle") << story();
    request_at(at);
  });
  after(1h, [&] { n1.power_cycle(); });
  after(5h + 50min, [&] {
    EXPECT_EQ(state("n1"), "idle") << story();
    EXPECT_EQ(n1.boots(), 1u);
    EXPECT_TRUE(requested());
    n1.kill_agent();
  });
  run_for(8h);
  EXPECT_EQ(state("n1"), "idle") << story();
  EXPECT_EQ(n1.boots(), 2u);
  EXPECT_FALSE(requested());
}

// The machine's clock is wrong, and the machine is down when the time comes. Neither loses the request.
TEST_F(People, ARequestForLaterSurvivesAWrongClockAndABootAroundItsTime) {
  Machine& n1 = machine("n1", {.target = ""});
  const WallTime at = std::chrono::floor<std::chrono::seconds>(clock.wall_now() + 2h);
  after(5min, [&] { request_at(at); });
  after(30min, [&] {
    agents_clock.set_wrong_by(5h);
    n1.power_cycle();
  });
  after(1h + 59min, [&] {
    EXPECT_TRUE(requested()) << story();
    n1.plan().agent_starts = 10min;
    n1.power_cycle();
  });
  run_for(6h);
  EXPECT_EQ(state("n1"), "idle") << story();
  EXPECT_EQ(n1.boots(), 3u) << "two by others, and the one that was requested";
  EXPECT_FALSE(requested());
}

// The time is changed to an earlier one, and a later request is taken back.
TEST_F(People, ARequestForLaterCanBeChangedAndTakenBack) {
  Machine& n1 = machine("n1", {.target = ""});
  const WallTime begin = std::chrono::floor<std::chrono::seconds>(clock.wall_now());
  after(5min, [&] { request_at(begin + 6h); });
  after(1h, [&] { request_at(begin + 2h); });
  after(3h, [&] {
    EXPECT_EQ(n1.boots(), 1u) << story();
    request_at(begin + 4h);
  });
  after(3h + 30min, [&] { request(nullptr); });
  run_for(8h);
  EXPECT_EQ(n1.boots(), 1u);
}

}  // namespace
}  // namespace haulout::fleet
