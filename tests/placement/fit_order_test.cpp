// Pods that are placed one after the other: how much capacity they have left after pods that are placed before them,
// and after pods whose place is not known.
#include "tests/placement/fit_fixture.hpp"

namespace haulout::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* not_for_all =
    "(there is capacity for it alone, but not for all pods that are evicted or pending)";

TEST(FitOrder, OneAfterTheOtherTheLargestFirst) {
  // 1500m and 500m fill n2, so there is no capacity for the small pod. In the order of names it would be the first.
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
  const char* message;  // a part of the message of the pod that does not fit or is unknown
};

// judge() places the pods in one order; the scheduler may place them in any other. So a pod without capacity left is
// `unknown`, unless the sum of all requests proves that the pods do not fit together.
TEST(FitOrder, WhatFitsAloneDoesNotFitOnlyWhenTheSumProvesIt) {
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
       "there is capacity for it alone, but perhaps not for all pods that are evicted or pending: 0/3 nodes are "
       "available: 1 Insufficient cpu"},
      {"4 + 3 + 3 into 6 + 4",
       {node_json("a", "6"), node_json("b", "4")},
       {pod_json("four", "4"), pod_json("three-1", "3"), pod_json("three-2", "3")},
       {"shop/four fits a", "shop/three-1 fits b", "shop/three-2 unknown"},
       "perhaps not for all pods that are evicted or pending"},
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
       "perhaps not for all pods that are evicted or pending"},
      {"a pod that waits may go nowhere else",
       one_ssd,
       {pod_json("ml", "1", on_ssd), waiting(pod_json("web", "1500m", on_ssd))},
       {"shop/ml does-not-fit"},
       not_for_all},
      {"a smaller one may find the room taken by it",
       one_ssd,
       {pod_json("ml", "1", on_ssd), pod_json("small", "500m", on_ssd), pod_json("web", "1500m")},
       {"shop/ml unknown", "shop/small unknown", "shop/web fits a"},
       "because this check cannot tell to which node that pod goes"},
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
       "perhaps not for all pods that are evicted or pending"},
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

TEST(FitOrder, RoomThatAnUnknownPodMayTakeIsNotCertain) {
  const auto fits = judged({node_json("n1", "8"), node_json("n2")},
                           {pod_json("foreign", "1500m", R"({"schedulerName":"volcano"})"), pod_json("web", "1")});
  EXPECT_THAT(verdicts(fits), ElementsAre("shop/foreign unknown", "shop/web unknown"));
  EXPECT_THAT(fits[1].message, HasSubstr("because this check cannot tell to which node that pod goes"));
}

struct AfterAnUnknown {
  const char* what;
  Json unknown;
  Json web;
  std::vector<std::string> verdicts;
};

// n2 is in zone a, n3 in zone b, each with 4 cpu. By the rules that the judgement knows, the unknown pod would go to
// n2.
TEST(FitOrder, FitsHoldsWhereverAnUnknownPodGoes) {
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
      EXPECT_THAT(fits.back().message, HasSubstr("because this check cannot tell to which node that pod goes"));
  }
}

TEST(FitOrder, APodWithAnUnknownAnswerMayPreemptOthers) {
  // n2 has no capacity for "a" only as long as "low" is there.
  Json foreign = pod_json("a", "1500m", R"({"schedulerName":"volcano","priority":10})");
  const Json low = pod_json("low", "1", R"({"nodeName":"n2"})");
  const std::vector<Json> nodes{node_json("n1", "8"), node_json("n2")};
  EXPECT_THAT(verdicts(judged(nodes, {foreign, low, pod_json("web", "1")})),
              ElementsAre("shop/a unknown", "shop/web unknown"));
  foreign["spec"]["preemptionPolicy"] = "Never";
  EXPECT_THAT(verdicts(judged(nodes, {foreign, low, pod_json("web", "1")})),
              ElementsAre("shop/a unknown", "shop/web fits n2"));
}

}  // namespace
}  // namespace haulout::placement
