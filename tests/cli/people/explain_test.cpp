// Tests `haulout explain`: its decisions with tables, and the command against a simulated cluster.
#include <fmt/format.h>

#include "cli/people/explanation.hpp"
#include "cli/people/fleet_summary.hpp"
#include "drain/cordon.hpp"
#include "tests/cli/people/people_fixture.hpp"
#include "tests/cli/people/samples.hpp"

namespace haulout::cli {
namespace {

using namespace samples;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

k8s::Pod pod(const std::string& name, const std::string& app = "") {
  k8s::Pod pod;
  pod.ns = "shop";
  pod.name = name;
  pod.uid = "uid-" + name;
  pod.phase = k8s::PodPhase::running;
  pod.ready = true;
  if (!app.empty()) pod.labels = {{"app", app}};
  pod.controller = k8s::OwnerReference{"apps/v1", "ReplicaSet", "web", "rs", true};
  return pod;
}

k8s::PodDisruptionBudget budget(const std::string& name, const std::string& app, std::int32_t allowed) {
  k8s::PodDisruptionBudget pdb;
  pdb.ns = "shop";
  pdb.name = name;
  pdb.uid = "pdb-" + name;
  pdb.selector = *k8s::parse_label_selector("app=" + app);
  pdb.disruptions_allowed = allowed;
  pdb.current_healthy = 3;
  pdb.desired_healthy = 3 - allowed;
  pdb.expected_pods = 3;
  pdb.min_available = std::to_string(pdb.desired_healthy);
  return pdb;
}

std::vector<std::string> verdicts(const std::vector<PodView>& views) {
  std::vector<std::string> lines;
  for (const PodView& view : views)
    lines.push_back(fmt::format("{} {} {}", view.key, to_string(view.fate), view.reason));
  return lines;
}

TEST(PodViewsTest, EveryPodHasAVerdict) {
  k8s::Pod daemon = pod("daemon");
  daemon.controller->kind = "DaemonSet";
  k8s::Pod guarded = pod("guarded");
  guarded.annotations = {{"karpenter.sh/do-not-disrupt", "true"}};
  k8s::Pod going = pod("going");
  going.deletion_timestamp = now;
  going.finalizers = {"example.com/backup"};
  k8s::Pod done = pod("done");
  done.phase = k8s::PodPhase::succeeded;
  k8s::Pod alone = pod("alone");
  alone.controller.reset();
  alone.has_empty_dir = true;
  const std::vector<k8s::PodDisruptionBudget> budgets{budget("closed", "db", 0), budget("open", "web", 1),
                                                      budget("x", "both", 5), budget("y", "both", 5)};
  const auto views =
      pod_views({pod("web-0", "web"), pod("db-0", "db"), pod("twice", "both"), daemon, guarded, going, done, alone},
                budgets, {}, {}, now);
  EXPECT_THAT(verdicts(views), ElementsAre("shop/alone evict EmptyDir", "shop/db-0 blocked BlockedByBudget",
                                           "shop/going leaving Terminating", "shop/guarded parked DoNotDisrupt",
                                           "shop/twice blocked OverlappingBudgets", "shop/web-0 evict ",
                                           "shop/daemon stay DaemonSetManaged", "shop/done stay Finished"));
  EXPECT_THAT(views[0].message, AllOf(HasSubstr("emptyDir"), HasSubstr("no controller")));
  EXPECT_THAT(views[1].message, AllOf(HasSubstr("shop/closed"), HasSubstr("[BudgetNeedsAllPods]")));
  EXPECT_THAT(views[2].message, HasSubstr("example.com/backup"));
  std::vector<std::string> evictable;
  for (const PodView& view : views) evictable.emplace_back(to_string(view.evictable));
  EXPECT_THAT(evictable, ElementsAre("yes", "no", "", "yes", "no", "yes", "", "")) << "the server asks no annotation";
  EXPECT_THAT(views[1].budgets, ElementsAre(PodBudget{"shop/closed", 0, 3, 3}));
  EXPECT_THAT(views[4].budgets, ElementsAre(PodBudget{"shop/x", 5, 3, -2}, PodBudget{"shop/y", 5, 3, -2}));
}

// The field `fate` shows the decision of Haulout's own policy. The budgets determine only whether the server would
// allow the eviction.
TEST(PodViewsTest, WhetherTheServerWouldLetAHeldPodGo) {
  drain::Policy strict;
  strict.empty_dir = drain::Treatment::refuse;
  k8s::Pod parked = pod("parked", "db");
  parked.annotations = {{"karpenter.sh/do-not-disrupt", "true"}};
  k8s::Pod refused = pod("refused", "web");
  refused.has_empty_dir = true;
  const auto told = [&](std::optional<std::vector<k8s::PodDisruptionBudget>> budgets) {
    std::vector<std::string> lines;
    for (const PodView& view : pod_views({parked, refused}, budgets, strict, {}, now))
      lines.push_back(fmt::format("{} {} {}", view.key, to_string(view.fate), to_string(view.evictable)));
    return lines;
  };
  EXPECT_THAT(told({{budget("closed", "db", 0), budget("open", "web", 1)}}),
              ElementsAre("shop/parked parked no", "shop/refused refused yes"));
  EXPECT_THAT(told({{budget("open", "db", 1), budget("x", "web", 1), budget("y", "web", 1)}}),
              ElementsAre("shop/parked parked yes", "shop/refused refused no"));
  EXPECT_THAT(told(std::nullopt), ElementsAre("shop/parked parked unknown", "shop/refused refused unknown"));
}

TEST(PodViewsTest, WhatKeepsAPodThatIsOnItsWay) {
  k8s::Pod held = pod("held"), stuck = pod("stuck"), going = pod("going");
  held.deletion_timestamp = stuck.deletion_timestamp = now - 2min;
  going.deletion_timestamp = now - 30s;
  held.containers_terminated = true;
  held.finalizers = {"example.com/backup"};
  const auto told = [&](bool node_ready) {
    std::vector<std::string> codes;
    for (const PodView& view : pod_views({held, stuck, going}, std::nullopt, {}, {}, now, node_ready)) {
      const std::size_t code = view.message.find('[');
      codes.push_back(view.key + (code == std::string::npos ? "" : " " + view.message.substr(code)));
    }
    return codes;
  };
  EXPECT_THAT(told(true), ElementsAre("shop/going", "shop/held [PodFinalizer]", "shop/stuck [PodStuckTerminating]"));
  EXPECT_THAT(told(false), ElementsAre("shop/going", "shop/held [PodFinalizer]", "shop/stuck"))
      << "that is said of the node";
}

// The server refuses to evict a pod with two budgets. But it evicts a pending pod without a look at the pod's budgets.
TEST(PodViewsTest, APendingPodUnderTwoBudgetsIsEvictable) {
  k8s::Pod starting = pod("starting", "both");
  starting.phase = k8s::PodPhase::pending;
  starting.ready = false;
  const std::vector<k8s::PodDisruptionBudget> budgets{budget("x", "both", 0), budget("y", "both", 0)};
  const auto views = pod_views({starting}, budgets, {}, {}, now);
  EXPECT_THAT(verdicts(views), ElementsAre("shop/starting evict "));
  EXPECT_EQ(views[0].evictable, Evictable::yes);
}

TEST(PodViewsTest, AsTheDrainWouldEvictThem) {
  k8s::Pod critical = pod("a-critical");
  critical.priority_class = "system-cluster-critical";
  critical.priority = 2000000000;
  k8s::Pod important = pod("b-important");
  important.priority = 100;
  k8s::Pod late = pod("c-late");
  late.annotations = {{"haulout.dev/drain-order", "10"}};
  k8s::Pod slow = pod("z-slow");
  slow.grace_seconds = 600;
  const auto views = pod_views({late, critical, important, pod("quick"), slow}, {{}}, {}, {}, now);
  std::vector<std::string> keys;
  for (const PodView& view : views) keys.push_back(view.key);
  EXPECT_THAT(keys, ElementsAre("shop/z-slow", "shop/quick", "shop/b-important", "shop/a-critical", "shop/c-late"));
}

TEST(PodViewsTest, UnseenBudgetsBlockNothingAndPromiseNothing) {
  const auto views = pod_views({pod("db-0", "db")}, std::nullopt, {}, {}, now);
  EXPECT_THAT(verdicts(views), ElementsAre("shop/db-0 evict "));
  EXPECT_EQ(views[0].evictable, Evictable::unknown);
}

TEST(PodViewsTest, ABudgetIsListedForThePodsItGuardsHere) {
  k8s::Pod daemon = pod("daemon", "db");
  daemon.controller->kind = "DaemonSet";
  const auto views = budget_views({pod("db-0", "db"), pod("db-1", "db"), daemon},
                                  {budget("db", "db", 1), budget("web", "web", 0)}, {}, {}, now);
  EXPECT_THAT(views, ElementsAre(BudgetView{"shop/db", 1, 3, 2, 2}));
}

std::string gate(const Explanation& about, const std::string& name) {
  for (const GateView& view : about.gates)
    if (view.name == name) return fmt::format("{}: {}", to_string(view.state), view.message);
  return "no such gate";
}

TEST(ExplanationTest, NothingToDo) {
  const Explanation about = explain({.node = node_in("n1", agent::State::idle)}, now);
  EXPECT_THAT(about.why, ElementsAre(HasSubstr("no reboot is needed")));
  for (const GateView& view : about.gates) EXPECT_NE(view.state, GateState::closed) << view.name;
}

TEST(ExplanationTest, ANodeWithoutAKubeletKeepsItsPods) {
  k8s::Node node = node_in("n1", agent::State::idle);
  node.ready = false;
  EXPECT_THAT(explain({.node = node}, now).why.front(), Not(HasSubstr("KubeletNotReady")));
  EXPECT_THAT(explain({.node = node, .pods = {pod("web-0")}}, now).why.front(), HasSubstr("[KubeletNotReady]"));
}

TEST(ExplanationTest, TheAuthorityOfItsAgent) {
  k8s::Node node = node_in("n1", agent::State::idle);
  EXPECT_THAT(explanation_text(explain({.node = node}, now)), Not(Contains(StartsWith("Authority:"))));
  EXPECT_EQ(Json::parse(explanation_json(explain({.node = node}, now)))["authority"], nullptr);
  remember(node, [](agent::Record& record) { record.authority = "kubelet"; });
  EXPECT_THAT(explanation_text(explain({.node = node}, now)), Contains("Authority:   kubelet"));
  EXPECT_EQ(Json::parse(explanation_json(explain({.node = node}, now)))["authority"], "kubelet");
}

TEST(ExplanationTest, ARequestIsShownWithItsReason) {
  k8s::Node node = node_in("n1", agent::State::idle);
  for (const auto& [value, shown] : std::map<std::string, std::string>{
           {"reboot", "requested"}, {"reboot;", "requested"}, {"reboot; disk; jane", "requested: disk; jane"}}) {
    node.annotations["haulout.dev/request"] = value;
    const Explanation about = explain({.node = node}, now);
    EXPECT_THAT(explanation_text(about), Contains("Reboot:      false, " + shown));
    EXPECT_THAT(about.why, ElementsAre(HasSubstr("a reboot was requested")));
  }
}

TEST(ExplanationTest, ARequestThatCannotBeReadIsSaidToBe) {
  k8s::Node node = node_in("n1", agent::State::idle);
  node.annotations["haulout.dev/request"] = "reboot at noon";
  const Explanation about = explain({.node = node}, now);
  EXPECT_THAT(explanation_text(about), Contains("Reboot:      false, with a request that cannot be read"));
  EXPECT_THAT(about.why, Contains(AllOf(HasSubstr("haulout.dev/request"), HasSubstr("\"reboot at noon\""),
                                        HasSubstr("haulout request-reboot n1"))));
}

TEST(ExplanationTest, OnlyARebootThatIsNeededHasACause) {
  k8s::Node node = node_in("n1", agent::State::updating);
  remember(node, [](agent::Record& record) { record.reasons = {"openssl 3.0.15-1 to 3.0.16-1"}; });
  for (const auto& [needed, shown] : std::map<std::string, std::string>{
           {"false", "Reboot:      false"}, {"true", "Reboot:      true, because of openssl 3.0.15-1 to 3.0.16-1"}}) {
    node.labels["haulout.dev/reboot-required"] = needed;
    EXPECT_THAT(explanation_text(explain({.node = node}, now)), Contains(shown));
  }
}

TEST(ExplanationTest, PackageUpdatesAreNamed) {
  k8s::Node node = node_in("n1", agent::State::pending);
  EXPECT_THAT(explanation_text(explain({.node = node}, now)), Not(Contains(StartsWith("Updates:"))));
  agent::Record record;
  record.state = agent::State::pending;
  record.updates = {"openssl 3.0.15-1 to 3.0.16-1", "and 3 more"};
  node.annotations["haulout.dev/record"] = encode_record(record);
  const Explanation about = explain({.node = node}, now);
  EXPECT_THAT(explanation_text(about), Contains("Updates:     openssl 3.0.15-1 to 3.0.16-1, and 3 more"));
  EXPECT_THAT(node_status_json(about.node),
              HasSubstr(R"("packageUpdates":["openssl 3.0.15-1 to 3.0.16-1","and 3 more"])"));
}

TEST(ExplanationTest, WithoutAnAgent) {
  EXPECT_THAT(explain({.node = bare("n1")}, now).why, ElementsAre(HasSubstr("no agent has reported")));
}

// Every state gets a reason, which contains the agent's own message.
TEST(ExplanationTest, NeverWithoutAReason) {
  for (const agent::State state : agent::all_states) {
    k8s::Node node = node_in("n1", state, "SomeReason", "some message");
    node.labels["haulout.dev/reboot-required"] = "true";
    const Explanation about = explain({.node = node}, now);
    EXPECT_THAT(about.why, Contains(AllOf(HasSubstr("SomeReason"), HasSubstr("some message")))) << to_string(state);
  }
}

TEST(ExplanationTest, PausesOfEveryKind) {
  k8s::Node node = node_in("n1", agent::State::pending, "Paused", "the cluster is paused: incident");
  node.annotations["haulout.dev/pause"] = "; disk";
  FleetFacts fleet;
  fleet.entries = {{"pause", R"({"reason":"incident"})"}, {"pause.web", R"({"reason":"freeze"})"}};
  Explanation about = explain({.node = node, .fleet = fleet}, now);
  EXPECT_EQ(gate(about, "pause-node"), "closed: this node is paused: disk");
  EXPECT_EQ(gate(about, "pause-cluster"), "closed: the cluster is paused: incident");
  EXPECT_THAT(gate(about, "pause-pool"), AllOf(StartsWith("unknown: "), HasSubstr("web"))) << "its pool is not known";
  EXPECT_THAT(gate(about, "agent"), AllOf(StartsWith("unknown: "), HasSubstr("the gate that it reports (Paused)")))
      << "the agent does not ask for pods and alerts while the node is paused";
  EXPECT_THAT(about.why, Contains("this node is paused: disk"));

  node.labels["haulout.dev/pool"] = "db";
  EXPECT_EQ(gate(explain({.node = node, .fleet = fleet}, now), "pause-pool"), "open: pool db is not paused");
  node.labels["haulout.dev/pool"] = "web";
  EXPECT_EQ(gate(explain({.node = node, .fleet = fleet}, now), "pause-pool"), "closed: pool web is paused: freeze");
  fleet.entries_problem = "forbidden";
  EXPECT_THAT(gate(explain({.node = node, .fleet = fleet}, now), "pause-cluster"), StartsWith("unknown: "));
}

TEST(ExplanationTest, WhatOnlyTheAgentKnows) {
  const Explanation about =
      explain({.node = node_in("n1", agent::State::pending, "OutsideWindow", "opens on Sunday")}, now);
  EXPECT_EQ(gate(about, "agent"), "closed: OutsideWindow: opens on Sunday");
  EXPECT_EQ(about.why.front(), "the node's state is pending (OutsideWindow): opens on Sunday");
}

// The limit of unavailable nodes is configured at the agents, and cordons by others count, too. So `explain` cannot
// know whether a node without a slot would get one. It shows the gate as open only if the node has a slot.
TEST(ExplanationTest, WhetherThereIsATurnForItIsNotKnownFromOutside) {
  EXPECT_THAT(gate(explain({.node = node_in("n1", agent::State::pending, "Paused")}, now), "slot"),
              AllOf(StartsWith("unknown: no Lease is held as a slot"), HasSubstr("unavailable nodes without a slot")));
  k8s::Node in_pool = node_in("n1", agent::State::pending, "Paused");
  in_pool.labels["haulout.dev/pool"] = "db";
  EXPECT_THAT(gate(explain({.node = in_pool}, now), "slot"),
              StartsWith("unknown: no Lease of pool db is held as a slot"));
  k8s::Node holder = node_in("n1", agent::State::draining);
  EXPECT_THAT(gate(explain({.node = holder, .fleet = {.turns = {turn_of(holder)}}}, now), "slot"), StartsWith("open"));
}

TEST(ExplanationTest, WhoseCordonItIs) {
  k8s::Node node = node_in("n1", agent::State::pending);
  node.unschedulable = true;
  const auto by = [&](const char* who) {
    node.annotations["haulout.dev/cordon"] = drain::encode_mark({"run", who, now});
    return explain({.node = node}, now).cordon;
  };
  EXPECT_THAT(by("agent"), StartsWith("by the agent, "));
  EXPECT_THAT(by("jane@desk"), AllOf(StartsWith("by jane@desk with a haulout command, "),
                                     HasSubstr("so run haulout uncordon n1 after")));
  node.annotations.clear();
  EXPECT_THAT(explain({.node = node}, now).cordon,
              AllOf(StartsWith("by another client"), HasSubstr("so run kubectl uncordon n1 after")));
}

TEST(ExplanationTest, ABackoffAndATurnHeldByAnother) {
  k8s::Node node = node_in("n1", agent::State::waiting, "WaitingForSlot", "at most 1 may be out");
  remember(node, [](agent::Record& record) {
    record.not_before = now + 10min;
    record.failures = 2;
    record.cause_message = "the drain was blocked";
  });
  const Explanation about =
      explain({.node = node, .fleet = {.turns = {turn_of(node_in("n2", agent::State::draining))}}}, now);
  EXPECT_THAT(gate(about, "slot"), AllOf(StartsWith("closed: at most 1"), HasSubstr("haulout-default-0 by n2")));
  EXPECT_THAT(gate(about, "backoff"),
              AllOf(StartsWith("closed: 2 attempts"), HasSubstr("12:10:00"), HasSubstr("the drain was blocked")));
}

TEST(ExplanationTest, WhatKeepsASlotFromANode) {
  for (const char* reason : {"WaitingForSlot", "WaitingForWave", "RollOutHalted", "WaitingForOrder"}) {
    const k8s::Node node = node_in("n1", agent::State::waiting, reason, "wave 1 of 2 of version 2.0");
    EXPECT_THAT(gate(explain({.node = node}, now), "slot"), StartsWith("closed: wave 1 of 2 of version 2.0")) << reason;
  }
}

TEST(ExplanationTest, PodsThatHoldTheDrainUpAreNamed) {
  const Explanation waiting = explain({.node = node_in("n1", agent::State::pending, "OutsideWindow", "x"),
                                       .pods = {pod("db-0", "db"), pod("web-0")},
                                       .budgets = {budget("db", "db", 0)}},
                                      now);
  EXPECT_THAT(waiting.why, Contains("1 pod would block a drain: shop/db-0 (BlockedByBudget)"));
  const Explanation idle = explain(
      {.node = node_in("n1", agent::State::idle), .pods = {pod("db-0", "db")}, .budgets = {budget("db", "db", 0)}},
      now);
  EXPECT_THAT(idle.why, Not(Contains(HasSubstr("shop/db-0")))) << "it is not why nothing happens";
}

struct ExplainTest : PeopleTest {
  void add_pod(const std::string& name, const Json& labels) {
    const Json owner = {
        {"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"name", "r"}, {"uid", "r"}, {"controller", true}};
    add({{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata",
          {{"name", name}, {"namespace", "shop"}, {"labels", labels}, {"ownerReferences", Json::array({owner})}}},
         {"spec", {{"nodeName", "n1"}, {"containers", {{{"name", "m"}, {"image", "i"}}}}}},
         {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }
  void prepare() {
    set_state("n1", "pending", "OutsideWindow");
    annotate("n1", {{"haulout.dev/message", "opens on Sunday"}});
    add_pod("web-0", {{"app", "web"}});
    add_pod("db-0", {{"app", "db"}});
    add({{"apiVersion", "policy/v1"},
         {"kind", "PodDisruptionBudget"},
         {"metadata", {{"name", "db"}, {"namespace", "shop"}}},
         {"spec", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "db"}}}}}}},
         {"status", {{"disruptionsAllowed", 0}, {"currentHealthy", 1}, {"desiredHealthy", 1}, {"expectedPods", 1}}}});
  }
};

TEST_F(ExplainTest, SaysAllAndChangesNothing) {
  prepare();
  EXPECT_EQ(command({"explain", "n1"}), 0);
  EXPECT_THAT(
      text.text,
      AllOf(
          HasSubstr("State:       pending (OutsideWindow)"),
          HasSubstr("Why not now:\n  - the node's state is pending (OutsideWindow): opens on Sunday\n"),
          HasSubstr("  agent           closed    OutsideWindow: opens on Sunday"),
          HasSubstr("shop/db-0    blocked   no          shop/db (allows 0, 1/1 healthy)   BlockedByBudget   blocked by "
                    "PodDisruptionBudget shop/db: "),
          HasSubstr("shop/web-0   evict     yes         <none>"), Not(HasSubstr("Fit elsewhere")),
          HasSubstr("\nUnknown:\n  - whether an admission webhook acts on the eviction of a pod"),
          HasSubstr("PODDISRUPTIONBUDGET   ALLOWED"), HasSubstr("shop/db               0         1")));
  EXPECT_THAT(errors.text, IsEmpty());
  for (const sim::AuditEntry& entry : cluster.audit()) EXPECT_THAT(entry.verb, ::testing::AnyOf("get", "list"));
}

TEST_F(ExplainTest, AsJson) {
  prepare();
  EXPECT_EQ(command({"explain", "n1", "-o", "json"}), 0);
  const Json json = Json::parse(out.text);
  EXPECT_EQ(json["kind"], "NodeExplanation");
  EXPECT_EQ(json["status"]["state"], "pending");
  EXPECT_EQ(json["pods"][0]["pod"], "shop/db-0");
  EXPECT_EQ(json["pods"][0]["verdict"], "blocked");
  EXPECT_EQ(json["pods"][0]["evictable"], false);
  EXPECT_EQ(json["pods"][0]["budgets"],
            Json::parse(R"([{"podDisruptionBudget":"shop/db","allowed":0,"healthy":1,"needed":1}])"));
  EXPECT_EQ(json["pods"][0]["fit"], nullptr);
  EXPECT_EQ(json["pods"][1]["evictable"], true);
  EXPECT_EQ(json["budgets"][0]["allowed"], 0);
  EXPECT_EQ(json["podsProblem"], nullptr);
  EXPECT_EQ(json["gates"].size(), 6u);
}

TEST_F(ExplainTest, WithLittlePermission) {
  prepare();
  cluster.forbid("list", "pods");
  cluster.forbid("list", "poddisruptionbudgets");
  cluster.forbid("list", "leases");
  cluster.forbid("get", "configmaps");
  EXPECT_EQ(command({"explain", "n1"}), 0);
  EXPECT_THAT(text.text, AllOf(HasSubstr("Pods: cannot be read"), HasSubstr("Budgets: cannot be read"),
                               HasSubstr("pause-cluster   unknown"), HasSubstr("slot            unknown")));
  cluster.forbid("get", "nodes");
  EXPECT_EQ(command({"explain", "n1"}), 3);
}

TEST_F(ExplainTest, WhetherThePodsFitElsewhere) {
  prepare();
  cluster.patch("nodes", "", "n2", {{"status", {{"allocatable", {{"pods", "1"}}}}}});
  cluster.patch("nodes", "", "n3", {{"spec", {{"unschedulable", true}}}});
  EXPECT_EQ(command({"explain", "n1", "--fit"}), 0);
  EXPECT_THAT(text.text,
              AllOf(HasSubstr("Fit elsewhere (largest pods first"), HasSubstr("shop/db-0    fits           n2"),
                    HasSubstr("shop/web-0   does-not-fit   <none>   NodeResourcesFit,NodeUnschedulable   0/3 nodes are "
                              "available: 1 Too many pods, 2 node(s) were unschedulable.")));
  for (const sim::AuditEntry& entry : cluster.audit()) EXPECT_THAT(entry.verb, ::testing::AnyOf("get", "list"));

  EXPECT_EQ(command({"explain", "n1", "--fit", "-o", "json"}), 0);
  const Json json = Json::parse(out.text);
  EXPECT_EQ(json["pods"][0]["fit"]["fit"], "fits");
  EXPECT_EQ(json["pods"][0]["fit"]["node"], "n2");
  EXPECT_EQ(json["pods"][1]["fit"]["plugins"], Json::array({"NodeResourcesFit", "NodeUnschedulable"}));

  cluster.forbid("list", "nodes");
  EXPECT_EQ(command({"explain", "n1", "--fit"}), 0);
  EXPECT_THAT(text.text, HasSubstr("Fit elsewhere: unknown for all pods of the node: "));
}

TEST_F(ExplainTest, AnUnknownNode) {
  EXPECT_EQ(command({"explain", "n9"}), 1);
  EXPECT_THAT(errors.text, HasSubstr("n9"));
}

}  // namespace
}  // namespace haulout::cli
