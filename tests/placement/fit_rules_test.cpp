#include <fmt/format.h>

#include "tests/placement/fit_fixture.hpp"

namespace haulout::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct OnePod {
  const char* what;
  const char* pod_spec;
  const char* node;  // merged into n2
  Fit fit;
  const char* plugin;   // if the pod does not fit: the plugin that rejects it
  const char* message;  // a part of the message
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
       R"({"spec":{"taints":[{"key":"gpu","value":"4","effect":"NoSchedule"}]}})", Fit::unknown, "",
       "operator Lt or Gt"},
      {"claim", R"({"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"d"}}]})", "{}", Fit::unknown, "",
       "this check does not consider volumes; apart from that there is capacity on n2"},
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
      {"anti-affinity by keys of labels", apart_by_keys.c_str(), "{}", Fit::unknown, "",
       "anti-affinity with a namespaceSelector or with label keys"},
      {"the default scheduler by name", R"({"schedulerName":"default-scheduler"})", "{}", Fit::fits, "", ""},
      {"another scheduler", R"({"schedulerName":"volcano"})", "{}", Fit::unknown, "",
       "scheduler volcano places it, and Haulout does not know the rules of that scheduler"},
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

// Terminating pods hold their capacity until they are deleted, and the time of that is not known.
TEST(FitRules, PodsThatAreTerminatingElsewhereMakeItUnknown) {
  const std::vector<Json> nodes{node_json("n1"), node_json("n2")};
  Json leaving = pod_json("leaving", "1500m", R"({"nodeName":"n2"})");
  leaving["metadata"]["deletionTimestamp"] = "2026-11-22T10:00:00Z";
  const Json web = pod_json("web", "1");
  const auto fits = judged(nodes, {web, leaving});
  EXPECT_THAT(verdicts(fits), ElementsAre("shop/web unknown"));
  EXPECT_THAT(fits[0].message,
              HasSubstr("it fits only after pods that are terminating on other nodes are deleted: 0/2 nodes are"));
  EXPECT_THAT(verdicts(judged(nodes, {pod_json("web", "300m"), leaving})), ElementsAre("shop/web fits n2"));
  EXPECT_THAT(verdicts(judged(nodes, {pod_json("web", "3"), leaving})), ElementsAre("shop/web does-not-fit"));
  EXPECT_THAT(verdicts(judged(nodes, {web, leaving, pod_json("other", "1500m", R"({"nodeName":"n2"})")})),
              ElementsAre("shop/web does-not-fit"));
  Json daemon = leaving;
  daemon["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet";
  EXPECT_THAT(verdicts(judged(nodes, {web, daemon})), ElementsAre("shop/web does-not-fit"))
      << "its next pod comes to the same node";
}

// A pod for which there is capacity only after terminating pods are deleted may take the capacity of a node where
// another pod fits now.
TEST(FitRules, WhoeverWaitsForTerminatingPodsMayTakeTheRoomOfOthers) {
  const std::vector<Json> nodes{node_json("n1", "8"), node_json("n2"), node_json("n3")};
  Json leaving = pod_json("leaving", "1", R"({"nodeName":"n2"})");
  leaving["metadata"]["deletionTimestamp"] = "2026-11-22T10:00:00Z";
  const Json full = pod_json("full", "2", R"({"nodeName":"n3"})");
  EXPECT_THAT(verdicts(judged(nodes, {pod_json("large", "1500m"), pod_json("small", "800m"), leaving, full})),
              ElementsAre("shop/large unknown", "shop/small unknown"));
  Json waits = pod_json("waits", "1500m", R"({"nodeName":null})");
  EXPECT_THAT(verdicts(judged(nodes, {pod_json("small", "800m"), leaving, full, waits})),
              ElementsAre("shop/small unknown"));
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

// If a device driver provides example.com/gpu by a resource claim, no node has it in its allocatable resources. So a
// missing amount does not mean that the pod does not fit.
TEST(FitRules, ResourcesThatClaimsServeAreNotWeighed) {
  const auto asking = [](const char* cpu) {
    return pod_json(
        "web", "0",
        fmt::format(
            R"({{"containers":[{{"name":"m","resources":{{"requests":{{"cpu":"{}","example.com/gpu":"1"}}}}}}]}})", cpu)
            .c_str());
  };
  const auto answer = [](const Json& pod) {
    return judged({node_json("n1"), node_json("n2")}, as_read("PodList", {pod}))[0];
  };
  EXPECT_EQ(answer(asking("1")).fit, Fit::does_not_fit);
  const auto served = [](Json pod) {
    pod["status"]["extendedResourceClaimStatus"] = {
        {"resourceClaimName", "web-extended-resources-x7k2p"},
        {"requestMappings",
         {{{"containerName", "m"}, {"resourceName", "example.com/gpu"}, {"requestName", "container-0-request-0"}}}}};
    return pod;
  };
  EXPECT_EQ(answer(served(asking("1"))).fit, Fit::unknown);
  EXPECT_EQ(answer(served(asking("1"))).message,
            "this check does not consider resource claims; apart from that there is capacity on n2");
  EXPECT_EQ(answer(served(asking("3"))).fit, Fit::does_not_fit);
  EXPECT_THAT(answer(served(asking("3"))).message, HasSubstr("0/2 nodes are available: 1 Insufficient cpu, 1 node(s)"));
}

TEST(FitRules, OnlyPodsThatStayUseCapacity) {
  const std::vector<Json> nodes{node_json("n1"), node_json("n2")};  // both in the same zone
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

// Objects that are reduced to the fields that the judgement reads must have the same result.
TEST(FitRules, ObjectsReducedToTheirRelevantFieldsGetTheSameAnswers) {
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
  const auto whole = judged(nodes, pods);
  ASSERT_EQ(whole.size(), pods.size());
  EXPECT_EQ(judged(as_read("NodeList", nodes), as_read("PodList", pods)), whole);
}

TEST(FitWords, TheSummaryNamesWhatDoesNotFitAndWhatIsNotKnown) {
  const PodFit fits{"shop/a", "a", Fit::fits, "n2", {}, ""};
  const PodFit not_fit{"shop/b", "b", Fit::does_not_fit, "", {"NodeResourcesFit"}, "0/2 nodes are available"};
  const PodFit unclear{"shop/c", "c", Fit::unknown, "", {}, "not weighed: volumes"};
  EXPECT_EQ(summary("n1", {fits}), "");
  EXPECT_EQ(summary("n1", {fits, not_fit}),
            "1 pod of node n1 would find no capacity on other nodes: shop/b (0/2 nodes are available)");
  EXPECT_EQ(summary("n1", {fits, not_fit, unclear}),
            "1 pod of node n1 would find no capacity on other nodes: shop/b (0/2 nodes are available); it is unknown "
            "whether 1 pod of node n1 would find capacity on other nodes: shop/c (not weighed: volumes)");
  EXPECT_THAT(summary("n1", std::vector<PodFit>(8, not_fit)), ::testing::EndsWith(" and 3 more"));
}

}  // namespace
}  // namespace haulout::placement
