#include "placement/fit_rules.hpp"

#include <gmock/gmock.h>

namespace haulout::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Object object(Json json) {
  return std::make_shared<const Json>(std::move(json));
}

Json node_json(const std::string& name, const char* cpu = "2", const char* more = "{}") {
  Json node = {{"metadata", {{"name", name}, {"labels", {{"kubernetes.io/hostname", name}, {"zone", "a"}}}}},
               {"spec", Json::object()},
               {"status", {{"allocatable", {{"cpu", cpu}, {"memory", "4Gi"}, {"pods", "10"}}}}}};
  node.merge_patch(Json::parse(more));
  return node;
}

// On n1 unless it says otherwise, of a ReplicaSet.
Json pod_json(const std::string& name, const char* cpu, const char* spec = "{}") {
  Json pod = {{"metadata",
               {{"name", name},
                {"namespace", "shop"},
                {"uid", name},
                {"labels", {{"app", name}}},
                {"ownerReferences", {{{"kind", "ReplicaSet"}, {"name", "rs"}, {"controller", true}}}}}},
              {"spec", {{"nodeName", "n1"}, {"containers", {{{"resources", {{"requests", {{"cpu", cpu}}}}}}}}}},
              {"status", {{"phase", "Running"}}}};
  pod["spec"].merge_patch(Json::parse(spec));
  return pod;
}

// Of the drain of n1; all of its pods leave, but those named "stays…".
std::vector<PodFit> judged(const std::vector<Json>& nodes, const std::vector<Json>& pods) {
  ClusterView view;
  FitQuestion question{{}, {"n1"}};
  for (const Json& node : nodes) view.nodes.push_back(object(node));
  for (const Json& pod : pods) {
    view.pods.push_back(object(pod));
    if (text(pod, "/spec/nodeName") == "n1" && !name_of(pod).starts_with("stays")) question.leaving.insert(uid_of(pod));
  }
  return judge(view, question);
}

std::vector<std::string> verdicts(const std::vector<PodFit>& fits) {
  std::vector<std::string> lines;
  for (const PodFit& fit : fits)
    lines.push_back(fmt::format("{} {}{}", fit.pod, to_string(fit.fit), fit.node.empty() ? "" : " " + fit.node));
  return lines;
}

constexpr const char* not_for_all = "(there is room for it alone, but not for all pods that leave or wait for a node)";

std::string anti_affinity_to(const char* app, const char* key, const char* more = "") {
  return fmt::format(
      R"({{"affinity":{{"podAntiAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":[
          {{"topologyKey":"{}","labelSelector":{{"matchLabels":{{"app":"{}"}}}}{}}}]}}}}}})",
      key, app, more);
}

struct OnePod {
  const char* what;
  const char* pod_spec;
  const char* node;  // merged into n2
  Fit fit;
  const char* plugin;   // does not fit: the one
  const char* message;  // a part of it
};

TEST(FitRules, ThreeAnswers) {
  const std::string apart_by_keys = anti_affinity_to("other", "zone", R"(,"matchLabelKeys":["hash"])");
  const OnePod cases[] = {
      {"room", "{}", "{}", Fit::fits, "", ""},
      {"too large", R"({"containers":[{"resources":{"requests":{"cpu":"3","memory":"5Gi"}}}]})", "{}",
       Fit::does_not_fit, "NodeResourcesFit",
       "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 node(s) were unschedulable."},
      {"the pod as a whole is too large", R"({"resources":{"requests":{"cpu":"3"}}})", "{}", Fit::does_not_fit,
       "NodeResourcesFit", "1 Insufficient cpu"},
      {"cordoned", "{}", R"({"spec":{"unschedulable":true}})", Fit::does_not_fit, "NodeUnschedulable",
       "0/2 nodes are available: 2 node(s) were unschedulable."},
      {"cordoned, and it would tolerate that", R"({"tolerations":[{"operator":"Exists"}]})",
       R"({"spec":{"unschedulable":true}})", Fit::does_not_fit, "NodeUnschedulable", "2 node(s) were unschedulable"},
      {"not ready", "{}", R"({"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}})", Fit::does_not_fit,
       "TaintToleration", "1 node(s) had untolerated taint(s)"},
      {"taint", "{}", R"({"spec":{"taints":[{"key":"gpu","effect":"NoExecute"}]}})", Fit::does_not_fit,
       "TaintToleration", "1 node(s) had untolerated taint(s)"},
      {"selector", R"({"nodeSelector":{"zone":"b"}})", "{}", Fit::does_not_fit, "NodeAffinity",
       "1 node(s) didn't match Pod's node affinity/selector"},
      {"a node that has said nothing yet", "{}", R"({"status":{"allocatable":null}})", Fit::does_not_fit,
       "NodeResourcesFit", "1 Too many pods"},
      {"a taint compared", R"({"tolerations":[{"key":"gpu","operator":"Gt","value":"3"}]})",
       R"({"spec":{"taints":[{"key":"gpu","value":"4","effect":"NoSchedule"}]}})", Fit::unknown, "", "compare"},
      {"claim", R"({"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"d"}}]})", "{}", Fit::unknown, "",
       "not weighed: volumes; for all else there is room on n2"},
      {"a claim, and too large all the same",
       R"({"volumes":[{"name":"d","ephemeral":{}}],"resources":{"requests":{"cpu":"3"}}})", "{}", Fit::does_not_fit,
       "NodeResourcesFit", "1 Insufficient cpu"},
      {"volumes that are everywhere",
       R"({"volumes":[{"name":"a","emptyDir":{}},{"name":"b","configMap":{}},{"name":"c","projected":{}}]})", "{}",
       Fit::fits, "", ""},
      {"spread",
       R"({"topologySpreadConstraints":[{"topologyKey":"zone","maxSkew":1,"whenUnsatisfiable":"DoNotSchedule"}]})",
       "{}", Fit::unknown, "", "topology spread"},
      {"a spread that is a wish",
       R"({"topologySpreadConstraints":[{"topologyKey":"zone","maxSkew":1,"whenUnsatisfiable":"ScheduleAnyway"}]})",
       "{}", Fit::fits, "", ""},
      {"affinity to pods",
       R"({"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone"}]}}})",
       "{}", Fit::unknown, "", "pod affinity"},
      {"host port", R"({"containers":[{"ports":[{"hostPort":80}]}]})", "{}", Fit::unknown, "", "host ports"},
      {"claims of devices", R"({"resourceClaims":[{"name":"gpu"}]})", "{}", Fit::unknown, "", "resource claims"},
      {"gates", R"({"schedulingGates":[{"name":"x"}]})", "{}", Fit::unknown, "", "scheduling gates"},
      {"anti-affinity by keys of labels", apart_by_keys.c_str(), "{}", Fit::unknown, "", "label keys"},
      {"the default scheduler by name", R"({"schedulerName":"default-scheduler"})", "{}", Fit::fits, "", ""},
      {"another scheduler", R"({"schedulerName":"volcano"})", "{}", Fit::unknown, "",
       "scheduler volcano decides, whose rules are not known"},
      {"another scheduler, and too large", R"({"schedulerName":"volcano","resources":{"requests":{"cpu":"3"}}})", "{}",
       Fit::unknown, "", "volcano"},
  };
  for (const OnePod& c : cases) {
    SCOPED_TRACE(c.what);
    const auto fits = judged({node_json("n1"), node_json("n2", "2", c.node)}, {pod_json("web", "1", c.pod_spec)});
    ASSERT_EQ(fits.size(), 1u);
    EXPECT_EQ(to_string(fits[0].fit), to_string(c.fit));
    EXPECT_EQ(fits[0].node, c.fit == Fit::fits ? "n2" : "");
    EXPECT_THAT(fits[0].message, HasSubstr(c.message));
    if (c.fit == Fit::does_not_fit)
      EXPECT_THAT(fits[0].plugins, ::testing::Contains(c.plugin));
    else
      EXPECT_THAT(fits[0].plugins, IsEmpty());
  }
}

TEST(FitRules, OneAfterTheOtherTheLargestFirst) {
  // 1500m and 500m fill n2, so the small one has no room; by name it would have been the first.
  const auto fits = judged({node_json("n1", "8"), node_json("n2")},
                           {pod_json("a-small", "400m"), pod_json("b-large", "1500m"), pod_json("c-middle", "500m")});
  EXPECT_THAT(verdicts(fits),
              ElementsAre("shop/a-small does-not-fit", "shop/b-large fits n2", "shop/c-middle fits n2"));
  EXPECT_THAT(fits[0].message, HasSubstr("1 Insufficient cpu"));
  EXPECT_THAT(fits[0].message, HasSubstr(not_for_all));
}

struct Together {
  const char* what;
  std::vector<Json> nodes;
  std::vector<Json> pods;
  std::vector<std::string> verdicts;
  const char* message;  // a part of what is said of the pod that does not fit, or of which it is not known
};

// The order in which they are placed here is one of many.
TEST(FitRules, WhatFitsAloneDoesNotFitOnlyWhenTheSumProvesIt) {
  constexpr const char* on_ssd = R"({"nodeSelector":{"disk":"ssd"}})";
  constexpr const char* ssd = R"({"metadata":{"labels":{"disk":"ssd"}}})";
  const std::vector<Json> one_ssd{node_json("a", "2", ssd), node_json("b", "2")};
  const auto waiting = [](Json pod) {
    pod["spec"].erase("nodeName");
    return pod;
  };
  const Json urgent = pod_json("urgent", "1500m", R"({"priority":10})");
  const Json waits_urgently = waiting(pod_json("waits", "1", R"({"priority":10})"));
  const Together cases[] = {
      {"it may go where another could go, too",
       one_ssd,
       {pod_json("ml", "1", on_ssd), pod_json("web", "1500m")},
       {"shop/ml unknown", "shop/web fits a"},
       "there is room for it alone; it depends on where the others go: 0/3 nodes are available: 1 Insufficient cpu"},
      {"4 + 3 + 3 into 6 + 4",
       {node_json("a", "6"), node_json("b", "4")},
       {pod_json("four", "4"), pod_json("three-1", "3"), pod_json("three-2", "3")},
       {"shop/four fits a", "shop/three-1 fits b", "shop/three-2 unknown"},
       "it depends on where the others go"},
      {"4 + 3 + 3 into 5 + 4",
       {node_json("a", "5"), node_json("b", "4")},
       {pod_json("four", "4"), pod_json("three-1", "3"), pod_json("three-2", "3")},
       {"shop/four fits a", "shop/three-1 fits b", "shop/three-2 does-not-fit"},
       not_for_all},
      {"room that none of them may take",
       {node_json("a", "2", ssd), node_json("b", "9")},
       {pod_json("ml-1", "1500m", on_ssd), pod_json("ml-2", "1", on_ssd)},
       {"shop/ml-1 fits a", "shop/ml-2 does-not-fit"},
       not_for_all},
      {"a pod that waits may go elsewhere",
       one_ssd,
       {pod_json("ml", "1", on_ssd), waiting(pod_json("web", "1500m"))},
       {"shop/ml unknown"},
       "it depends on where the others go"},
      {"a pod that waits may go nowhere else",
       one_ssd,
       {pod_json("ml", "1", on_ssd), waiting(pod_json("web", "1500m", on_ssd))},
       {"shop/ml does-not-fit"},
       not_for_all},
      {"a smaller one may find the room taken by it",
       one_ssd,
       {pod_json("ml", "1", on_ssd), pod_json("small", "500m", on_ssd), pod_json("web", "1500m")},
       {"shop/ml unknown", "shop/small unknown", "shop/web fits a"},
       "unless a pod whose own place is not known takes it"},
      {"too many pods",
       {node_json("a", "9", R"({"status":{"allocatable":{"pods":"1"}}})")},
       {pod_json("one", "1"), pod_json("two", "1")},
       {"shop/one fits a", "shop/two does-not-fit"},
       not_for_all},
      {"alone it would preempt",
       {node_json("a")},
       {pod_json("low", "1", R"({"nodeName":"a"})"), urgent, waits_urgently},
       {"shop/urgent unknown"},
       "only if pods of lower priority are preempted"},
      {"after the others it would preempt",
       {node_json("a", "3")},
       {pod_json("low", "1", R"({"nodeName":"a"})"), urgent, waits_urgently},
       {"shop/urgent unknown"},
       "only if pods of lower priority are preempted"},
      {"it could preempt beside what may have to be moved",
       {node_json("a"), node_json("b", "800m")},
       {pod_json("low", "500m", R"({"nodeName":"a"})"), pod_json("urgent", "1", R"({"priority":10})"),
        waiting(pod_json("waits", "1500m", R"({"priority":10})"))},
       {"shop/urgent unknown"},
       "it depends on where the others go"},
  };
  for (const Together& c : cases) {
    SCOPED_TRACE(c.what);
    std::vector<Json> nodes{node_json("n1", "9")};
    nodes.insert(nodes.end(), c.nodes.begin(), c.nodes.end());
    const auto fits = judged(nodes, c.pods);
    EXPECT_EQ(verdicts(fits), c.verdicts);
    EXPECT_THAT(fits, ::testing::Contains(::testing::Field(&PodFit::message, HasSubstr(c.message))));
  }
}

TEST(FitRules, WhatOthersTakeIsNotFree) {
  const Json web = pod_json("web", "1");
  Json other = pod_json("other", "1500m", R"({"nodeName":"n2"})");
  const std::vector<Json> nodes{node_json("n1"), node_json("n2")};
  EXPECT_THAT(verdicts(judged(nodes, {web, other})), ElementsAre("shop/web does-not-fit"));
  other["status"]["phase"] = "Succeeded";
  EXPECT_THAT(verdicts(judged(nodes, {web, other})), ElementsAre("shop/web fits n2"));
  const Json waits = pod_json("other", "1500m", R"({"nodeName":null})");
  EXPECT_THAT(verdicts(judged(nodes, {web, waits})), ElementsAre("shop/web does-not-fit"))
      << "a pod that waits for a node takes its room, too";
  const Json gated = pod_json("other", "1500m", R"({"nodeName":null,"schedulingGates":[{"name":"x"}]})");
  EXPECT_THAT(verdicts(judged(nodes, {web, gated})), ElementsAre("shop/web fits n2"));
}

TEST(FitRules, PodsOfLowerPriorityMayBePreempted) {
  const Json other = pod_json("other", "1500m", R"({"nodeName":"n2","priority":10})");
  const std::vector<Json> nodes{node_json("n1"), node_json("n2")};
  const auto answer = [&](const char* spec) { return judged(nodes, {pod_json("web", "1", spec), other})[0]; };
  EXPECT_EQ(answer(R"({"priority":10})").fit, Fit::does_not_fit);
  EXPECT_EQ(answer(R"({"priority":11})").fit, Fit::unknown);
  EXPECT_THAT(answer(R"({"priority":11})").message, HasSubstr("preempted"));
  EXPECT_EQ(answer(R"({"priority":11,"preemptionPolicy":"Never"})").fit, Fit::does_not_fit);
  EXPECT_EQ(answer(R"({"priority":11,"resources":{"requests":{"cpu":"3"}}})").fit, Fit::does_not_fit)
      << "not even in its place";
}

TEST(FitRules, WhatLeavesIsInNobodysWayAndWhatStaysIs) {
  const std::vector<Json> nodes{node_json("n1"), node_json("n2")};  // of one zone
  const std::string from_db = anti_affinity_to("db", "zone");
  const std::string from_stays = anti_affinity_to("stays", "zone");
  EXPECT_THAT(verdicts(judged(nodes, {pod_json("db", "1"), pod_json("gone", "1", from_db.c_str())})),
              ElementsAre("shop/db fits n2", "shop/gone unknown"))
      << "but it comes back there, too";
  EXPECT_THAT(verdicts(judged(nodes, {pod_json("stays", "1"), pod_json("web", "1", from_stays.c_str())})),
              ElementsAre("shop/web does-not-fit"));
  Json going = pod_json("stays", "1");
  going["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z";
  EXPECT_THAT(verdicts(judged(nodes, {going, pod_json("web", "1", from_stays.c_str())})),
              ElementsAre("shop/web fits n2"));
}

TEST(FitRules, RoomThatAnUnknownPodMayTakeIsNotCertain) {
  const auto fits = judged({node_json("n1", "8"), node_json("n2")},
                           {pod_json("foreign", "1500m", R"({"schedulerName":"volcano"})"), pod_json("web", "1")});
  EXPECT_THAT(verdicts(fits), ElementsAre("shop/foreign unknown", "shop/web unknown"));
  EXPECT_THAT(fits[1].message, HasSubstr("whose own place is not known"));
}

struct AfterAnUnknown {
  const char* what;
  Json unknown;
  Json web;
  std::vector<std::string> verdicts;
};

// n2 in zone a and n3 in zone b, each with 4 cpu; the pod that is not known would go to n2, by what is weighed.
TEST(FitRules, FitsHoldsWhereverAnUnknownPodGoes) {
  constexpr const char* claim = R"({"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"d"}}]})";
  constexpr const char* in_b = R"({"nodeSelector":{"zone":"b"}})";
  const std::string apart = anti_affinity_to("a", "kubernetes.io/hostname");
  const Json claims = pod_json("a", "3", claim);
  Json waits = claims;
  waits["spec"].erase("nodeName");
  Json waits_for_foreign = pod_json("a", "3", R"({"schedulerName":"volcano","nodeName":null})");
  Json claims_in_a = claims;
  claims_in_a["spec"]["nodeSelector"] = {{"zone", "a"}};
  const AfterAnUnknown cases[] = {
      {"it may be there", claims, pod_json("web", "2", in_b), {"shop/a unknown", "shop/web unknown"}},
      {"a waiting one may be there", waits, pod_json("web", "2", in_b), {"shop/web unknown"}},
      {"a waiting one of another scheduler", waits_for_foreign, pod_json("web", "2", in_b), {"shop/web unknown"}},
      {"room for both", claims, pod_json("web", "1", in_b), {"shop/a unknown", "shop/web fits n3"}},
      {"it cannot be there", claims_in_a, pod_json("web", "2", in_b), {"shop/a unknown", "shop/web fits n3"}},
      {"it must not be beside it", claims, pod_json("web", "1", apart.c_str()), {"shop/a unknown", "shop/web unknown"}},
      {"too large without it", claims, pod_json("web", "5", in_b), {"shop/a unknown", "shop/web does-not-fit"}},
  };
  for (const AfterAnUnknown& c : cases) {
    SCOPED_TRACE(c.what);
    const auto fits = judged(
        {node_json("n1", "8"), node_json("n2", "4"), node_json("n3", "4", R"({"metadata":{"labels":{"zone":"b"}}})")},
        {c.unknown, c.web});
    EXPECT_EQ(verdicts(fits), c.verdicts);
    if (!fits.empty() && c.verdicts.back() == "shop/web unknown")
      EXPECT_THAT(fits.back().message, HasSubstr("unless a pod whose own place is not known takes it"));
  }
}

TEST(FitRules, AnUnknownPodMayPreemptItsWay) {
  // n2 is full for "a" only as long as "low" stands there.
  Json foreign = pod_json("a", "1500m", R"({"schedulerName":"volcano","priority":10})");
  const Json low = pod_json("low", "1", R"({"nodeName":"n2"})");
  const std::vector<Json> nodes{node_json("n1", "8"), node_json("n2")};
  EXPECT_THAT(verdicts(judged(nodes, {foreign, low, pod_json("web", "1")})),
              ElementsAre("shop/a unknown", "shop/web unknown"));
  foreign["spec"]["preemptionPolicy"] = "Never";
  EXPECT_THAT(verdicts(judged(nodes, {foreign, low, pod_json("web", "1")})),
              ElementsAre("shop/a unknown", "shop/web fits n2"));
}

TEST(FitRules, WhatNothingBringsBackNeedsNoRoom) {
  Json alone = pod_json("alone", "9");
  alone["metadata"].erase("ownerReferences");
  EXPECT_THAT(judged({node_json("n1"), node_json("n2")}, {alone}), IsEmpty());
  Json orphan = pod_json("orphan", "9");
  orphan["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet";
  EXPECT_THAT(judged({node_json("n1"), node_json("n2")}, {orphan}), IsEmpty());
}

TEST(FitRules, ClosedNodesGetNothing) {
  ClusterView view{{object(node_json("n1")), object(node_json("n2")), object(node_json("n3"))},
                   {object(pod_json("web", "1"))}};
  EXPECT_EQ(judge(view, {{"web"}, {"n1", "n2"}})[0].node, "n3");
  EXPECT_EQ(judge(view, {{"web"}, {"n1", "n2", "n3"}})[0].fit, Fit::does_not_fit);
}

// Nothing that the judgement reads is lost on the way.
TEST(FitRules, TheEssenceIsJudgedAsTheWhole) {
  const std::string apart = anti_affinity_to("db", "kubernetes.io/hostname");
  Json claims = pod_json("claims", "100m", R"({"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"d"}}]})");
  Json sidecar = pod_json(
      "sidecar", "100m", R"({"initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"1500m"}}}]})");
  const std::vector<Json> pods{pod_json("db", "100m", apart.c_str()),
                               claims,
                               sidecar,
                               pod_json("ports", "100m", R"({"containers":[{"ports":[{"hostPort":80}]}]})"),
                               pod_json("picky", "100m", R"({"nodeSelector":{"zone":"b"},"priority":3})"),
                               pod_json("gpu", "100m", R"({"tolerations":[{"key":"gpu","operator":"Exists"}]})")};
  const std::vector<Json> nodes{node_json("n1"), node_json("n2", "2", R"({"spec":{"unschedulable":true}})"),
                                node_json("n3", "4", R"({"spec":{"taints":[{"key":"gpu","effect":"NoSchedule"}]}})"),
                                node_json("n4", "1")};
  std::vector<Json> pods_left, nodes_left;
  for (const Json& pod : pods) pods_left.push_back(*essence_of_pod(pod));
  for (const Json& node : nodes) nodes_left.push_back(*essence_of_node(node));
  const auto whole = judged(nodes, pods);
  ASSERT_EQ(whole.size(), pods.size());
  EXPECT_EQ(judged(nodes_left, pods_left), whole);
}

TEST(FitWords, TheSummaryNamesWhatDoesNotFitAndWhatIsNotKnown) {
  const PodFit fits{"shop/a", "a", Fit::fits, "n2", {}, ""};
  const PodFit not_fit{"shop/b", "b", Fit::does_not_fit, "", {"NodeResourcesFit"}, "0/2 nodes are available"};
  const PodFit unclear{"shop/c", "c", Fit::unknown, "", {}, "not weighed: volumes"};
  EXPECT_EQ(summary("n1", {fits}), "");
  EXPECT_EQ(summary("n1", {fits, not_fit}),
            "1 pod of node n1 would find no room elsewhere: shop/b (0/2 nodes are available)");
  EXPECT_EQ(summary("n1", {fits, not_fit, unclear}),
            "1 pod of node n1 would find no room elsewhere: shop/b (0/2 nodes are available); whether 1 pod of node n1 "
            "would find room elsewhere is not known: shop/c (not weighed: volumes)");
  EXPECT_THAT(summary("n1", std::vector<PodFit>(8, not_fit)), ::testing::EndsWith(" and 3 more"));
}

}  // namespace
}  // namespace haulout::placement
