#include "placement/room.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "placement/selector.hpp"
#include "retry/rng.hpp"

namespace haulout::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct QuantityCase {
  const char* text;
  std::optional<std::int64_t> value;
};

TEST(Quantity, IsReadAsTheApiReadsIt) {
  const QuantityCase cases[] = {
      {"2", 2000},
      {"500m", 500},
      {"1.5", 1500},
      {"0.1", 100},
      {"100u", 1},
      {"1Ki", 1024'000},
      {"1k", 1000'000},
      {"128Mi", 134217728'000},
      {"1e3", 1000'000},
      {"0", 0},
      {"", std::nullopt},
      {"x", std::nullopt},
      {"1Zi", std::nullopt},
      {"1 Gi", std::nullopt},
      {"100Ei", std::nullopt},
  };
  for (const QuantityCase& c : cases) EXPECT_EQ(thousandths(c.text), c.value) << c.text;
}

Json pod_with(const char* spec, const char* labels = "{}", const char* name = "p") {
  return {{"metadata", {{"name", name}, {"namespace", "shop"}, {"uid", name}, {"labels", Json::parse(labels)}}},
          {"spec", Json::parse(spec)},
          {"status", {{"phase", "Running"}}}};
}

Json node_with(const char* name, const char* more = "{}") {
  Json node = {{"metadata", {{"name", name}, {"labels", {{"zone", "a"}, {"kubernetes.io/hostname", name}}}}},
               {"spec", Json::object()},
               {"status", {{"allocatable", {{"cpu", "2"}, {"memory", "4Gi"}, {"pods", "3"}}}}}};
  node.merge_patch(Json::parse(more));
  return node;
}

constexpr const char* wants_1500m = R"({"containers":[{"resources":{"requests":{"cpu":"1500m","memory":"1Gi"}}}]})";

Place place_on(const Json& pod, const std::vector<Json>& nodes, const std::vector<Json>& pods = {}) {
  std::vector<Object> all_nodes;
  for (const Json& node : nodes) all_nodes.push_back(std::make_shared<const Json>(node));
  Room room(all_nodes, Room::Unstated::no_end);
  for (const Json& other : pods) room.put(std::make_shared<const Json>(other), text(other, "/spec/nodeName"));
  return room.find(pod);
}

Json standing(Json pod, const char* node) {
  pod["spec"]["nodeName"] = node;
  return pod;
}

struct Misfit {
  const char* what;
  const char* pod_spec;
  const char* node;
  const char* message;  // empty means that the pod fits
};

TEST(Room, FiltersOfTheScheduler) {
  const Misfit cases[] = {
      {"room", wants_1500m, "{}", ""},
      {"cordoned", wants_1500m, R"({"spec":{"unschedulable":true}})", "1 node(s) were unschedulable"},
      {"not ready", wants_1500m, R"({"status":{"conditions":[{"type":"Ready","status":"False"}]}})",
       "1 node(s) had untolerated taint(s)"},
      {"taint", wants_1500m, R"({"spec":{"taints":[{"key":"gpu","value":"yes","effect":"NoSchedule"}]}})",
       "1 node(s) had untolerated taint(s)"},
      {"another value tolerated",
       R"({"tolerations":[{"key":"gpu","operator":"Equal","value":"no","effect":"NoSchedule"}]})",
       R"({"spec":{"taints":[{"key":"gpu","value":"yes","effect":"NoSchedule"}]}})",
       "1 node(s) had untolerated taint(s)"},
      {"tolerated", R"({"tolerations":[{"key":"gpu","value":"yes"}]})",
       R"({"spec":{"taints":[{"key":"gpu","value":"yes","effect":"NoSchedule"}]}})", ""},
      {"only preferred", wants_1500m, R"({"spec":{"taints":[{"key":"gpu","effect":"PreferNoSchedule"}]}})", ""},
      {"selector", R"({"nodeSelector":{"zone":"b"}})", "{}", "1 node(s) didn't match Pod's node affinity/selector"},
      {"affinity holds",
       R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
          {"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]},{"key":"gpu","operator":"DoesNotExist"}]}]}}}})",
       "{}", ""},
      {"affinity fails",
       R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
          {"matchExpressions":[{"key":"zone","operator":"NotIn","values":["a"]}]},
          {"matchFields":[{"key":"metadata.name","operator":"In","values":["n9"]}]},{}]}}}})",
       "{}", "1 node(s) didn't match Pod's node affinity/selector"},
      {"cpu", R"({"containers":[{"resources":{"requests":{"cpu":"2001m"}}}]})", "{}", "1 Insufficient cpu"},
      {"memory", R"({"containers":[{"resources":{"requests":{"memory":"5Gi"}}}]})", "{}", "1 Insufficient memory"},
      {"an init container alone", R"({"initContainers":[{"resources":{"requests":{"cpu":"3"}}}],"containers":[{}]})",
       "{}", "1 Insufficient cpu"},
      {"what the node does not have", R"({"containers":[{"resources":{"requests":{"example.com/gpu":"1"}}}]})", "{}",
       "1 Insufficient example.com/gpu"},
      {"nothing stated", wants_1500m, R"({"status":{"allocatable":null}})", ""},
  };
  for (const Misfit& c : cases) {
    SCOPED_TRACE(c.what);
    const Place found = place_on(pod_with(c.pod_spec), {node_with("n1", c.node)});
    EXPECT_EQ(found.node, *c.message == '\0' ? "n1" : "");
    if (*c.message != '\0') EXPECT_EQ(found.message, std::string("0/1 nodes are available: ") + c.message + ".");
  }
}

TEST(Room, WhatOthersUseIsNotFree) {
  const Json pod = pod_with(wants_1500m);
  const Json other = pod_with(wants_1500m, "{}", "other");
  EXPECT_EQ(place_on(pod, {node_with("n1"), node_with("n2")}, {standing(other, "n1")}).node, "n2");
  EXPECT_THAT(place_on(pod, {node_with("n1")}, {standing(other, "n1")}).message, HasSubstr("1 Insufficient cpu"));
  Json finished = standing(other, "n1");
  finished["status"]["phase"] = "Succeeded";
  EXPECT_EQ(place_on(pod, {node_with("n1")}, {finished}).node, "n1");
}

TEST(Room, PodsPerNodeAreCounted) {
  std::vector<Json> pods;
  for (const char* name : {"a", "b", "c"}) pods.push_back(standing(pod_with("{}", "{}", name), "n1"));
  EXPECT_THAT(place_on(pod_with("{}"), {node_with("n1")}, pods).message, HasSubstr("1 Too many pods"));
}

TEST(Room, AntiAffinityKeepsPodsApartBothWays) {
  constexpr const char* apart = R"({"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
      {"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"db"}}}]}}})";
  const Json careful = pod_with(apart, R"({"app":"db"})", "careful");
  const Json careless = pod_with("{}", R"({"app":"db"})", "careless");
  const Json unrelated = pod_with("{}", R"({"app":"web"})", "unrelated");
  const std::vector<Json> nodes = {node_with("n1"), node_with("n2")};
  EXPECT_EQ(place_on(careful, nodes, {standing(careless, "n1")}).node, "n2");
  EXPECT_EQ(place_on(careless, nodes, {standing(careful, "n1")}).node, "n2");
  EXPECT_EQ(place_on(unrelated, {nodes[0]}, {standing(careful, "n1")}).node, "n1");
  EXPECT_THAT(place_on(careful, {nodes[0]}, {standing(careless, "n1")}).message,
              HasSubstr("1 node(s) didn't match pod anti-affinity rules"));
}

TEST(Room, WhoHasLeftTakesNothing) {
  const auto node = std::make_shared<const Json>(node_with("n1"));
  const auto shared = [](Json pod) { return std::make_shared<const Json>(std::move(pod)); };
  const Json wish = pod_with(wants_1500m, R"({"app":"web"})", "wish");
  const char* apart = R"({"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
    [{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"web"}}}]}}})";
  const auto finished = shared([] {
    Json pod = pod_with(wants_1500m);
    pod["status"]["phase"] = "Succeeded";
    return pod;
  }());
  Room room({node}, Room::Unstated::no_end);
  for (const Object& other : {shared(pod_with(wants_1500m)), shared(pod_with(apart))}) {
    room.put(finished, "n1");
    room.put(other, "n1");
    EXPECT_EQ(room.find(wish).node, "");
    room.take(finished, "n1");
    EXPECT_EQ(room.find(wish).node, "");
    room.take(other, "n1");
    EXPECT_EQ(room.find(wish).node, "n1");
  }
  room.take(finished, "elsewhere");
}

TEST(Room, ANodeThatChangesKeepsItsPods) {
  const auto shared = [](Json json) { return std::make_shared<const Json>(std::move(json)); };
  const Json wish = pod_with(wants_1500m, "{}", "wish");
  Room room({shared({{"metadata", {{"name", "n1"}}}})}, Room::Unstated::no_end);
  const Object other = shared(pod_with(wants_1500m));
  room.put(other, "n1");
  EXPECT_EQ(room.find(wish).node, "n1") << "it states nothing";
  room.renew(shared(node_with("n1")));
  EXPECT_EQ(room.find(wish).node, "");
  room.renew(shared(node_with("n1", R"({"status":{"allocatable":{"cpu":"4"}}})")));
  EXPECT_EQ(room.find(wish).node, "n1");
  room.renew(shared(node_with("n1", R"({"status":{"allocatable":{"cpu":"4"}},"spec":{"unschedulable":true}})")));
  EXPECT_EQ(room.find(wish).node, "");
  room.renew(shared({{"metadata", {{"name", "n1"}}}}));
  EXPECT_EQ(room.find(wish).node, "n1");
  room.renew(shared(node_with("n2")));
  EXPECT_EQ(room.find(wish).node, "n1") << "n2 is not known";
}

TEST(Room, EveryReasonIsCounted) {
  const Place found = place_on(pod_with(wants_1500m), {node_with("n1", R"({"spec":{"unschedulable":true}})"),
                                                       node_with("n2", R"({"status":{"allocatable":{"cpu":"1"}}})"),
                                                       node_with("n3", R"({"spec":{"unschedulable":true}})")});
  EXPECT_EQ(found.message, "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.");
}

TEST(Requests, AreThoseOfEverythingThatRunsAtOnce) {
  const auto requests = requests_of(pod_with(R"({
      "containers":[{"resources":{"requests":{"cpu":"100m"}}},{"resources":{"requests":{"cpu":"200m"}}}],
      "initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"50m"}}},
                        {"resources":{"requests":{"cpu":"250m"}}}],
      "overhead":{"cpu":"10m"}})"));
  EXPECT_EQ(requests.at("cpu"), 360);  // the larger of 100 + 200 + 50 and 250 + 50, plus the overhead of 10
  EXPECT_EQ(requests.at("pods"), 1000);
}

TEST(Requests, BeyondAllBoundsFitNowhere) {
  const char* const pods[] = {
      R"({"containers":[{"resources":{"requests":{"cpu":"100Ei"}}}]})",
      R"({"containers":[{"resources":{"requests":{"cpu":"lots"}}}]})",
      R"({"containers":[{"resources":{"requests":{"cpu":true}}}]})",
      R"({"containers":[{"resources":{"requests":{"cpu":9223372036854775807}}}]})",
      R"({"containers":[{"resources":{"requests":{"cpu":18446744073709551615}}}]})",
      R"({"containers":[{"resources":{"requests":{"cpu":"9e15"}}},{"resources":{"requests":{"cpu":"9e15"}}}]})",
      R"({"initContainers":[{"resources":{"requests":{"cpu":"9e15"}}}],"containers":[{}],"overhead":{"cpu":"9e15"}})",
  };
  for (const char* spec : pods) {
    SCOPED_TRACE(spec);
    const Json pod = pod_with(spec);
    const Json huge = node_with("n1", R"({"status":{"allocatable":{"cpu":"9e15"}}})");
    EXPECT_THAT(place_on(pod, {node_with("n1")}).message, HasSubstr("1 Insufficient cpu"));
    EXPECT_THAT(place_on(pod, {huge}).message, HasSubstr("1 Insufficient cpu"));
    std::vector<Json> others;
    for (const char* name : {"a", "b"}) others.push_back(standing(pod_with(spec, "{}", name), "n1"));
    EXPECT_THAT(place_on(pod_with(wants_1500m), {huge}, others).message, HasSubstr("1 Insufficient cpu"));
  }
}

TEST(Requests, NumbersAreQuantitiesToo) {
  EXPECT_EQ(requests_of(pod_with(R"({"overhead":{"cpu":2,"x":1.5,"y":null}})")),
            (Amounts{{"cpu", 2000}, {"pods", 1000}, {"x", 1500}, {"y", 0}}));
}

TEST(Limits, WhatCannotBeReadIsNone) {
  for (const char* cpu : {R"("lots")", R"("100Ei")", "18446744073709551615", "[]"}) {
    const Json node = node_with("n1", fmt::format(R"({{"status":{{"allocatable":{{"cpu":{}}}}}}})", cpu).c_str());
    EXPECT_THAT(place_on(pod_with(wants_1500m), {node}).message, HasSubstr("1 Insufficient cpu")) << cpu;
  }
}

// The sum of the two requests is clamped. If both were subtracted from it, the node would seem to have endless room.
TEST(Room, PreemptionAddsUpWhatStays) {
  const Json pod = pod_with(R"({"priority":5,"containers":[{"resources":{"requests":{"cpu":"8"}}}]})");
  std::vector<Json> others;
  for (const char* name : {"a", "b"})
    others.push_back(
        standing(pod_with(R"({"containers":[{"resources":{"requests":{"cpu":"lots"}}}]})", "{}", name), "n1"));
  const Place found = place_on(pod, {node_with("n1")}, others);
  EXPECT_EQ(found.preempts_on, "");
  EXPECT_THAT(found.message, HasSubstr("1 Insufficient cpu"));
}

// The pod goes where its volumes are: a disk of a machine, or a volume of a zone.
TEST(Room, AllVolumesOfThePodMustReachTheNode) {
  const auto volume_in = [](const Json& terms) {
    Json volume = {{"metadata", {{"name", "pv"}}}, {"spec", Json::object()}};
    if (!terms.is_null()) volume["spec"]["nodeAffinity"] = {{"required", {{"nodeSelectorTerms", terms}}}};
    return std::make_shared<const Json>(std::move(volume));
  };
  const auto with_label = [](const char* key, std::vector<std::string> values) {
    return Json::array({{{"matchExpressions", {{{"key", key}, {"operator", "In"}, {"values", values}}}}}});
  };
  const Object of_n2 = volume_in(with_label("kubernetes.io/hostname", {"n2"}));
  const Object of_zone_a = volume_in(with_label("zone", {"a", "b"}));
  const Object everywhere = volume_in(nullptr);
  std::vector<Object> nodes;
  for (const char* name : {"n1", "n2", "n3"}) nodes.push_back(std::make_shared<const Json>(node_with(name)));
  Room room(nodes, Room::Unstated::no_end);
  const Json pod = pod_with(wants_1500m);
  EXPECT_EQ(room.find(pod, {}, {everywhere, of_zone_a}).node, "n1");
  EXPECT_EQ(room.find(pod, "n1", {of_zone_a, of_n2}).node, "n2");

  const Json low = standing(pod_with(wants_1500m, "{}", "low"), "n2");
  room.put(std::make_shared<const Json>(low), "n2");
  Json high = pod;
  high["spec"]["priority"] = 10;
  const Place found = room.find(high, {}, {of_n2});
  EXPECT_EQ(found.message,
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match PersistentVolume's node affinity.");
  EXPECT_EQ(found.preempts_on, "n2");
  const Place nowhere = room.find(high, {}, {volume_in(with_label("zone", {"c"}))});
  EXPECT_EQ(nowhere.node, "");
  EXPECT_EQ(nowhere.preempts_on, "") << "other pods do not keep it from the node";
}

TEST(Room, ANodeIsClosedUntilItIsOpened) {
  Room room({std::make_shared<const Json>(node_with("n1"))}, Room::Unstated::no_end);
  const Json pod = pod_with(R"({"tolerations":[{"operator":"Exists"}]})");
  room.close("n1");
  EXPECT_EQ(room.find(pod).message, "0/1 nodes are available: 1 node(s) were unschedulable.");
  room.open("n1");
  EXPECT_EQ(room.find(pod).node, "n1");
}

TEST(Room, ClaimsAreWeighedIfTheirVolumesAreKnown) {
  const auto with = [](const char* volumes) {
    return pod_with((std::string(R"({"volumes":[)") + volumes + "]}").c_str());
  };
  const Json claim = with(R"({"name":"a","persistentVolumeClaim":{"claimName":"a"}},{"name":"b","ephemeral":{}})");
  EXPECT_THAT(not_weighed(claim), ElementsAre("volumes"));
  EXPECT_THAT(not_weighed(claim, true), IsEmpty());
  EXPECT_THAT(not_weighed(with(R"({"name":"a","iscsi":{}})"), true), ElementsAre("volumes"));
}

TEST(Room, ANodeWithRoomGoesBeforePreemption) {
  const Json pod = pod_with(R"({"priority":5,"containers":[{"resources":{"requests":{"cpu":"1500m"}}}]})");
  const Json other = standing(pod_with(wants_1500m, "{}", "other"), "n1");
  EXPECT_EQ(place_on(pod, {node_with("n1")}, {other}).preempts_on, "n1");
  const Place found = place_on(pod, {node_with("n1"), node_with("n2")}, {other});
  EXPECT_EQ(found.node, "n2");
  EXPECT_EQ(found.preempts_on, "");
}

// find() looks at few sites. A site fits if find() still chooses it when all other sites are closed.
TEST(Room, TheChoiceIsTheSameAsThatOfALookAtEverySite) {
  SeededRng rng(7);
  std::size_t refused = 0, chosen = 0, preferred = 0;
  for (int world = 0; world < 60; ++world) {
    std::vector<Object> nodes;
    for (int i = 0; i < 6; ++i) {
      const std::string more =
          fmt::format(R"({{"metadata":{{"labels":{{"zone":"{}"}}}},"spec":{{"unschedulable":{}}}}})",
                      rng.chance(50) ? "a" : "b", rng.chance(20));
      nodes.push_back(std::make_shared<const Json>(node_with(fmt::format("n{}", i).c_str(), more.c_str())));
    }
    const auto a_pod = [&](int number) {
      const std::string app = fmt::format("app{}", rng.between(std::uint64_t{0}, std::uint64_t{2}));
      const std::string apart = fmt::format(
          R"(,"affinity":{{"podAntiAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":[{{"topologyKey":"{}",)"
          R"("labelSelector":{{"matchLabels":{{"app":"{}"}}}}}}]}}}})",
          rng.chance(50) ? "zone" : "kubernetes.io/hostname", app);
      const std::string spec =
          fmt::format(R"({{"containers":[{{"resources":{{"requests":{{"cpu":"{}m"}}}}}}]{}}})",
                      200 * rng.between(std::uint64_t{0}, std::uint64_t{5}), rng.chance(40) ? apart : "");
      return std::make_shared<const Json>(
          pod_with(spec.c_str(), fmt::format(R"({{"app":"{}"}})", app).c_str(), fmt::format("p{}", number).c_str()));
    };
    Room room(nodes, Room::Unstated::nothing);
    std::map<std::string, std::size_t> pods;
    std::vector<std::pair<Object, std::string>> placed;
    for (int number = 0; number < 25; ++number) {
      const Object pod = a_pod(number);
      const std::string wish = rng.chance(30) ? "n3" : "";
      std::string expected;
      bool wish_fits = false;
      for (int i = 0; i < 6; ++i) {
        const std::string name = fmt::format("n{}", i);
        Room only = room;
        for (int other = 0; other < 6; ++other)
          if (other != i) only.close(fmt::format("n{}", other));
        if (only.find(*pod).node.empty()) continue;
        wish_fits = wish_fits || name == wish;
        if (expected.empty() || pods[name] < pods[expected]) expected = name;
      }
      if (wish_fits) expected = wish;
      const Place found = room.find(*pod, wish);
      ASSERT_EQ(found.node, expected) << "world " << world << ", pod " << number;
      EXPECT_EQ(found.message.empty(), !expected.empty());
      (expected.empty() ? refused : wish_fits ? preferred : chosen) += 1;
      if (!expected.empty()) {
        room.put(pod, expected);
        ++pods[expected];
        placed.emplace_back(pod, expected);
      }
      if (!placed.empty() && rng.chance(40)) {
        std::swap(placed.back(), placed[rng.between(std::uint64_t{0}, placed.size() - 1)]);
        room.take(placed.back().first, placed.back().second);
        --pods[placed.back().second];
        placed.pop_back();
      }
    }
  }
  EXPECT_GT(std::min({refused, chosen, preferred}), 50u);
}

struct OddSelector {
  const char* selector;
  bool matches;  // the labels are app=web
};

TEST(Selector, NeverFails) {
  const Json labels = {{"app", "web"}};
  const OddSelector cases[] = {
      {R"({"matchLabels":{"app":1}})", false},
      {R"({"matchLabels":{"app":null}})", false},
      {R"({"matchLabels":["app"]})", true},
      {R"({"matchExpressions":[{"key":"app","operator":"In","values":[1,"web"]}]})", true},
      {R"({"matchExpressions":[{"key":"app","operator":"In","values":[{}]}]})", false},
      {R"({"matchExpressions":[{"key":"app","operator":"NotIn","values":[null]}]})", true},
      {R"({"matchExpressions":[{"key":"app","operator":"In","values":7}]})", false},
      {R"({"matchExpressions":"app"})", false},
      {R"("app")", false},
  };
  for (const OddSelector& c : cases)
    EXPECT_EQ(Selector::from_object(Json::parse(c.selector)).matches_labels(labels), c.matches) << c.selector;
}

}  // namespace
}  // namespace haulout::placement
