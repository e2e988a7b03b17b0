// The promises of the agent (P3 to P11 in docs/scenarios.md), each tested by itself.
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Not;

struct Promises : Fleet {
  void web(int replicas) { add(a_workload("Deployment", "web", replicas, {{"terminationGracePeriodSeconds", 5}})); }
  void held_pod() {
    PodSpec held;
    held.labels = {{"app", "held"}};
    add(a_pod("held-0", held));
    add(a_budget("held", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
  }
  Json a_late_pod() {
    PodSpec late;
    late.spec = {{"tolerations", {{{"operator", "Exists"}}}}};
    return a_pod("late-0", late);
  }
  void take_turns_away() {
    checks.by_a_person([&] {
      for (const Json& lease : cluster.all("leases")) cluster.remove("leases", "haulout", sim::name_of(lease));
    });
  }
  // Runs the action once, as soon as the Node shows this state.
  void once_in(const std::string& wanted, std::function<void()> action) {
    cluster.on_change([this, wanted, action = std::move(action), done = false](const sim::Change& change) mutable {
      if (done || change.key.resource != "nodes" || state("n1") != wanted) return;
      done = true;
      cluster.after(0s, action);
    });
  }
};
using P3_ReadyMeansReady = Promises;
using P5_OwnMarksOnly = Promises;
using P6_NoRebootWithoutATurn = Promises;
using P7_ARestart = Promises;
using P10_KindToTheServer = Promises;
using P8_ToldWithTheWayOut = Promises;

TEST_F(P8_ToldWithTheWayOut, AWebhookThatDenies) {
  machine("n1");
  add(a_pod("db-0", PodSpec{}));
  cluster.server().intercept([](const sim::Call&, const sim::AuditEntry& entry) -> std::optional<http::Response> {
    if (entry.subresource != "eviction") return std::nullopt;
    sim::StatusBody denied;
    denied.code = 400;
    denied.message = "admission webhook \"guard.example.com\" denied the request: never";
    return denied.response();
  });
  // Everything that the Node shows, except the times of heartbeats.
  const auto shown = [this] {
    sim::Json now = node("n1");
    now["metadata"].erase("resourceVersion");
    now["metadata"].erase("managedFields");
    for (sim::Json& condition : now["status"]["conditions"]) condition.erase("lastHeartbeatTime");
    return now.dump();
  };
  std::string before;
  after(10min, [&] {
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "AdmissionDenied") << story();
    EXPECT_THAT(sim::annotation(node("n1"), "haulout.dev/message"),
                ::testing::AllOf(::testing::StartsWith("pod shop/db-0 waits for webhook guard.example.com: "),
                                 ::testing::HasSubstr("ask the owner of the webhook")));
    before = shown();
  });
  after(20min, [&] { EXPECT_EQ(shown(), before) << "nothing but heartbeats is written while nothing changes"; });
  run_for(21min);
}

TEST_F(P8_ToldWithTheWayOut, ANamespaceThatDoesNotDie) {
  machine("n1");
  add(a_pod("db-0", PodSpec{}));
  cluster.timing().namespace_lag = 1h;
  cluster.terminate_namespace("shop");
  after(10min, [&] {
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "NamespaceTerminating") << story();
    EXPECT_THAT(sim::annotation(node("n1"), "haulout.dev/message"),
                ::testing::AllOf(::testing::StartsWith("pod shop/db-0 waits for namespace shop: "),
                                 ::testing::HasSubstr("kubectl get namespace shop -o yaml")));
  });
  run_for(11min);
}

TEST(P3_ReadyIsWithdrawn, WhenAnyOfItIsLost) {
  struct OneNode : Promises {
    void TestBody() override {}
    using Promises::a_late_pod;
    using Promises::add;
    using Promises::take_turns_away;
    using Promises::uncordon;
    void go(const char* what, const std::function<void(OneNode&, Machine&)>& happens) {
      Machine& n1 = machine("n1", {.methods = {}});
      after(5min, [&] {
        EXPECT_EQ(state("n1"), "ready") << what << "\n" << story();
        EXPECT_TRUE(n1.shows_ready()) << what;
        happens(*this, n1);
      });
      after(5min + 1s, [&] {
        EXPECT_NE(state("n1"), "ready") << what << "\n" << story();
        EXPECT_FALSE(n1.shows_ready()) << what;
      });
      run_for(10min);
    }
  };
  OneNode().go("the cordon", [](OneNode& fleet, Machine&) { fleet.uncordon("n1"); });
  OneNode().go("the turn", [](OneNode& fleet, Machine&) { fleet.take_turns_away(); });
  OneNode().go("the emptiness", [](OneNode& fleet, Machine&) { fleet.add(fleet.a_late_pod()); });
  OneNode().go("the need", [](OneNode&, Machine& n1) { n1.want(""); });
}

// The agent removes the ready file at once, although it cannot write the Node.
TEST_F(P3_ReadyMeansReady, TheFileDoesNotWaitForTheApiServer) {
  Machine& n1 = machine("n1", {.methods = {}});
  after(5min, [&] {
    EXPECT_TRUE(n1.shows_ready());
    cluster.restart(10min);
    n1.want("");
  });
  after(5min + 1s, [&] { EXPECT_FALSE(n1.shows_ready()); });
  run_fleet(30min);
  EXPECT_EQ(state("n1"), "idle");
}

// The machine reboots whenever the ready file appears, as with a systemd path unit. After the boot it must not be ready
// a second time.
TEST_F(P3_ReadyMeansReady, AMachineThatRebootsWheneverItIsSaidToBeReadyDoesSoOnce) {
  Machine& n1 = machine("n1", {.methods = {}});
  n1.on_ready = [&] { n1.power_cycle(); };
  run_fleet(1h);
  expect_updated(n1);
  EXPECT_EQ(n1.boots(), 1u) << story();
}

TEST_F(P3_ReadyMeansReady, APodThatComesRightBeforeTheRebootIsSeen) {
  Machine& n1 = machine("n1");
  once_in("rebooting", [&] { add(a_late_pod()); });
  run_fleet(1h);
  expect_updated(n1);
  EXPECT_THAT(states_of("n1"), IsSupersetOf({"rebooting", "draining"}));
  EXPECT_EQ(
      std::count(checks.states.begin(), checks.states.end(), std::pair<std::string, std::string>("n1", "draining")), 2)
      << story();
}

TEST_F(P3_ReadyMeansReady, ACordonThatIsLostRightBeforeTheRebootIsSeen) {
  Machine& n1 = machine("n1");
  once_in("rebooting", [&] { uncordon("n1"); });
  after(2min, [&] { EXPECT_EQ(n1.boots(), 0u) << story(); });
  run_fleet(1h);
  expect_updated(n1);
}

TEST_F(P5_OwnMarksOnly, WhatPeopleWroteOnTheNodeStays) {
  Machine& n1 = machine("n1");
  const Json theirs = {{"metadata",
                        {{"labels", {{"node.kubernetes.io/exclude-from-external-load-balancers", "theirs"}}},
                         {"annotations", {{"example.com/owner", "team-1"}}}}},
                       {"spec", {{"taints", {{{"key", "example.com/dedicated"}, {"effect", "NoSchedule"}}}}}}};
  cluster.patch("nodes", "", "n1", theirs);
  run_fleet();
  expect_updated(n1);
  const Json after_all = node("n1");
  const Json& metadata = after_all["metadata"];
  EXPECT_EQ(metadata["labels"].value("node.kubernetes.io/exclude-from-external-load-balancers", ""), "theirs");
  EXPECT_EQ(metadata["annotations"].value("example.com/owner", ""), "team-1");
  EXPECT_EQ(sim::at(after_all, "/spec/taints"), theirs["spec"]["taints"]);
  EXPECT_FALSE(metadata["annotations"].contains("haulout.dev/cordon"));
}

// A cordon by a person while the agent's cordon is in force changes nothing, and the agent uncordons the node in the
// end. But after a person has uncordoned the node, the next cordon is the person's, and it stays.
TEST_F(P5_OwnMarksOnly, ACordonAfterOursWasTakenBackIsAPersons) {
  Machine& n1 = machine("n1");
  held_pod();
  after(1min, [&] { uncordon("n1"); });
  after(3min, [&] { cordon("n1"); });
  after(4min, [&] { cluster.remove("poddisruptionbudgets", "shop", "held"); });
  run_fleet();
  EXPECT_EQ(n1.version(), "1.1") << story();
  EXPECT_TRUE(unschedulable("n1")) << story();
}

TEST_F(P6_NoRebootWithoutATurn, ATurnThatIsLostRightBeforeTheReboot) {
  Machine& n1 = machine("n1");
  once_in("rebooting", [&] { take_turns_away(); });
  run_fleet(1h);
  expect_updated(n1);
  EXPECT_EQ(n1.boots(), 1u);
  EXPECT_THAT(states_of("n1"), Contains("pending")) << story();
}

TEST_F(P6_NoRebootWithoutATurn, NobodyIsEvictedWithoutATurnAfterARestart) {
  Machine& n1 = machine("n1", {.agent_starts = 30s});
  held_pod();
  after(1min, [&] {
    n1.kill_agent();
    take_turns_away();
    cluster.remove("poddisruptionbudgets", "shop", "held");
    add(a_node("other"));
    cordon("other");
  });
  after(10min, [&] {
    EXPECT_EQ(state("n1"), "waiting") << story();
    EXPECT_EQ(checks.evictions, 0u) << story();
    EXPECT_FALSE(unschedulable("n1")) << story();
    uncordon("other");
  });
  run_fleet(1h);
  expect_updated(n1);
}

// P6: no more nodes are unavailable at a time than the limit allows, however many want to update.
TEST_F(P6_NoRebootWithoutATurn, TenNodesAtOnce) {
  limit_percent = 20;
  for (int i = 1; i <= 10; ++i) machine("n" + std::to_string(i));
  web(12);
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
  EXPECT_EQ(slots_held(), 0u);
}

// SIGTERM has the same effect as a crash: the agent writes nothing, and its successor finds everything as it was.
TEST_F(P7_ARestart, InTheMiddleOfADrainIsNoReboot) {
  Machine& n1 = machine("n1");
  held_pod();
  Json before;
  after(1min, [&] {
    before = node("n1")["metadata"]["annotations"];
    n1.kill_agent();
  });
  after(3min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    EXPECT_EQ(node("n1")["metadata"]["annotations"]["haulout.dev/record"], before["haulout.dev/record"]);
    EXPECT_EQ(node("n1")["metadata"]["annotations"]["haulout.dev/cordon"], before["haulout.dev/cordon"]);
    cluster.remove("poddisruptionbudgets", "shop", "held");
  });
  run_fleet(1h);
  expect_updated(n1);
  EXPECT_EQ(n1.boots(), 1u);
}

// The kubelet has stopped an evicted pod, so that its phase is Failed, and a finalizer holds the pod. The drain of the
// next agent waits until the pod is deleted.
TEST_F(P7_ARestart, ForgetsNoPodThatWasAskedToLeave) {
  Machine& n1 = machine("n1");
  PodSpec held;
  held.metadata = {{"finalizers", {"example.com/hold"}}};
  add(a_pod("held-0", held));
  after(2min, [&] {
    EXPECT_EQ(sim::text(cluster.get("pods", "shop", "held-0"), "/status/phase"), "Failed") << story();
    n1.kill_agent();
  });
  after(10min, [&] {
    EXPECT_EQ(state("n1"), "draining") << story();
    EXPECT_FALSE(n1.shows_ready());
    cluster.patch("pods", "shop", "held-0", {{"metadata", {{"finalizers", nullptr}}}});
  });
  run_fleet(1h);
  expect_updated(n1);
}

// The pod finished before the restart. A person deletes it afterwards, and a finalizer holds it. The node stays ready.
TEST_F(P7_ARestart, InReadyAFinishedPodThatSomebodyDeletesIsNoNews) {
  Machine& n1 = machine("n1", {.methods = {}});
  Json job = a_pod("job-0");
  job["status"]["phase"] = "Succeeded";
  job["metadata"]["finalizers"] = {"example.com/hold"};
  add(job);
  after(10min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    n1.kill_agent();
  });
  after(20min, [&] {
    EXPECT_EQ(state("n1"), "ready") << story();
    cluster.delete_gracefully("pods", "shop", "job-0");
  });
  after(30min, [&] { EXPECT_EQ(state("n1"), "ready") << story(); });
  run_for(31min);
}

// Limits of each idle agent: half a request a minute, and one wake-up of the processor every five seconds. The test
// checks them for ten minutes each, beginning 1, 31 and 61 minutes after the start.
TEST_F(P10_KindToTheServer, AFleetThatNeedsNothingAsksForNothing) {
  for (const char* name : {"n1", "n2", "n3"}) machine(name, {.target = ""});
  std::vector<std::size_t> before;
  std::size_t rung = 0;
  for (const Duration from : {1min, 31min, 61min}) {
    after(from, [&] {
      before.clear();
      for (const auto& each : machines) before.push_back(each->requests());
      rung = agents_clock.rung();
    });
    after(from + 10min, [&] {
      for (std::size_t i = 0; i < machines.size(); ++i) EXPECT_LE(machines[i]->requests() - before[i], 5u);
      EXPECT_LE(agents_clock.rung() - rung, 120u * machines.size());
    });
  }
  run_for(72min);
}

// All waiting agents see at the same moment that the slot is free. The number of requests for each node must not grow
// with the number of nodes that wait.
TEST(P10_KindToTheWaiting, ATurnCostsTheSameHoweverManyWaitForIt) {
  struct Line : Promises {
    void TestBody() override {}
    // Requests of all agents divided by the number of nodes, counted from the moment at which all nodes wait.
    double cost(std::size_t nodes) {
      for (std::size_t i = 0; i < nodes; ++i) machine("n" + std::to_string(i), {.target = ""});
      std::size_t before = 0;
      after(10min, [this] {
        for (const auto& each : machines) each->want("1.1");
      });
      after(11min, [&] { before = requests(); });
      run_fleet(24h);
      for (const auto& each : machines) EXPECT_EQ(each->boots(), 1u) << story();
      return static_cast<double>(requests() - before) / static_cast<double>(nodes);
    }
    std::size_t requests() const {
      std::size_t sum = 0;
      for (const auto& each : machines) sum += each->requests();
      return sum;
    }
  };
  const double few = Line().cost(8);
  const double many = Line().cost(32);
  // Nodes that wait longer need more requests to keep their watches open. If each free slot woke all nodes, the cost
  // would be four times as high.
  EXPECT_LE(many, 2 * few) << few << " requests for each of eight nodes, " << many << " for each of 32";
}

// The server throttles every request for an hour, whatever the agents are doing.
TEST_F(P10_KindToTheServer, AnHourOfRefusals) {
  machine("n1");
  machine("n2");
  machine("n3", {.target = ""});
  held_pod();
  std::vector<std::size_t> before;
  after(1min, [&] {
    for (const auto& each : machines) before.push_back(each->requests());
    cluster.throttle(1h, 1);
  });
  after(61min, [&] {
    for (std::size_t i = 0; i < machines.size(); ++i) EXPECT_LE(machines[i]->requests() - before[i], 1600u);
    cluster.remove("poddisruptionbudgets", "shop", "held");
  });
  run_fleet();
}

}  // namespace
}  // namespace haulout::fleet
