#include "k8s/codec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "k8s/status.hpp"
#include "tests/k8s/fixtures.hpp"

namespace haulout::k8s {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using namespace std::chrono_literals;

WallTime at(std::string_view text) {
  return *parse_time(text);
}

TEST(Codec, ReadsEveryFieldOfAPod) {
  const auto list = decode_list<Pod>(fixtures::list("PodList", "18", fixtures::full_pod));
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(list->meta.resource_version, "18");
  ASSERT_EQ(list->items.size(), 1u);
  Pod expected;
  expected.ns = "shop";
  expected.name = "web-0";
  expected.uid = "u1";
  expected.resource_version = "17";
  expected.labels = {{"app", "web"}, {"containers", "yes"}};
  expected.annotations = {{"haulout.dev/drain-order", "3"},
                          {"karpenter.sh/do-not-disrupt", "true"},
                          {"leaderworkerset.sigs.k8s.io/size", "4"}};
  expected.controller = OwnerReference{"apps/v1", "StatefulSet", "web", "o1", true};
  expected.owned = true;
  expected.finalizers = {"example.com/hold"};
  expected.deletion_timestamp = at("2026-11-21T02:00:30Z");
  expected.deletion_grace_seconds = 30;
  expected.node_name = "n1";
  expected.grace_seconds = 120;
  expected.priority = 1000;
  expected.priority_class = "high";
  expected.pod_group = "train";
  expected.has_empty_dir = true;
  expected.phase = PodPhase::running;
  expected.ready = true;
  expected.containers_terminated = true;
  expected.start_time = at("2026-11-21T01:00:01Z");
  expected.created = at("2026-11-21T01:00:00Z");
  EXPECT_EQ(list->items.front(), expected);
}

TEST(Codec, AReplicaHasWhatThePodHas) {
  const std::string unschedulable =
      R"({"metadata":{"name":"b","namespace":"shop","uid":"v","resourceVersion":"2"},"status":{"phase":"Pending",)"
      R"("conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes"}]}})";
  for (const std::string& text : {fixtures::full_pod, fixtures::pod("a", "u", "1"), unschedulable}) {
    const std::string list = fixtures::list("PodList", "18", text);
    const auto pods = decode_list<Pod>(list);
    const auto replicas = decode_list<Replica>(list);
    ASSERT_TRUE(pods && replicas) << text;
    ASSERT_EQ(pods->items.size(), 1u);
    ASSERT_EQ(replicas->items.size(), 1u);
    EXPECT_EQ(replicas->items.front(), static_cast<const Replica&>(pods->items.front())) << text;
  }
}

TEST(Codec, AbsentFieldsOfAPodHaveTheDefaultsOfTheApi) {
  const auto pod = decode<Pod>(fixtures::pod("a", "u", "1", ""));
  ASSERT_TRUE(pod) << pod.error().message();
  Pod expected;
  expected.ns = "shop";
  expected.name = "a";
  expected.uid = "u";
  expected.resource_version = "1";
  expected.node_name = "n1";
  EXPECT_EQ(*pod, expected);
  EXPECT_EQ(pod->grace_seconds, 30);
}

std::string pod_with(const std::string& spec, const std::string& status) {
  return R"({"kind":"Pod","metadata":{"name":"a","namespace":"s","uid":"u","resourceVersion":"1"},"spec":{)" + spec +
         R"(},"status":{)" + status + "}}";
}

TEST(Codec, TolerationOfTheCordonTaint) {
  const std::vector<std::pair<const char*, bool>> cases = {
      {R"({"key":"node.kubernetes.io/unschedulable","operator":"Exists","effect":"NoSchedule"})", true},
      {R"({"key":"node.kubernetes.io/unschedulable","operator":"Exists"})", true},
      {R"({"operator":"Exists"})", true},
      {R"({"operator":"Exists","effect":"NoSchedule"})", true},
      {R"({"key":"node.kubernetes.io/unschedulable"})", true},
      {R"({"key":"node.kubernetes.io/unschedulable","operator":"Equal","value":"x"})", false},
      {R"({"operator":"Exists","effect":"NoExecute"})", false},
      {R"({"key":"node.kubernetes.io/unschedulable","operator":"Exists","effect":"NoExecute"})", false},
      {R"({"key":"node.kubernetes.io/not-ready","operator":"Exists"})", false},
      {R"({"operator":"Equal"})", false},
  };
  for (const auto& [toleration, expected] : cases) {
    const auto pod = decode<Pod>(pod_with(R"("tolerations":[)" + std::string(toleration) + "]", ""));
    ASSERT_TRUE(pod) << pod.error().message();
    EXPECT_EQ(pod->tolerates_unschedulable, expected) << toleration;
  }
}

TEST(Codec, ContainersAreTerminatedWhenNothingRuns) {
  const std::vector<std::pair<const char*, bool>> cases = {
      {"", false},
      {R"("containerStatuses":[])", false},
      {R"("containerStatuses":[{"state":{"terminated":{}}}])", true},
      {R"("containerStatuses":[{"state":{"terminated":{}}},{"state":{"running":{}}}])", false},
      {R"("containerStatuses":[{"state":{"waiting":{}}}])", false},
      {R"("containerStatuses":[{"state":{"terminated":{}}}],"initContainerStatuses":[{"state":{"running":{}}}])",
       false},
      {R"("containerStatuses":[{"state":{"terminated":{}}}],"initContainerStatuses":[{"state":{"terminated":{}}}])",
       true},
      {R"("containerStatuses":[{"state":{"terminated":{}}}],"ephemeralContainerStatuses":[{"state":{"running":{}}}])",
       false},
  };
  for (const auto& [status, expected] : cases) {
    const auto pod = decode<Pod>(pod_with("", status));
    ASSERT_TRUE(pod) << pod.error().message();
    EXPECT_EQ(pod->containers_terminated, expected) << status;
  }
}

TEST(Codec, Phases) {
  const std::vector<std::pair<const char*, PodPhase>> cases = {
      {"", PodPhase::pending},       {"Pending", PodPhase::pending}, {"Running", PodPhase::running},
      {"Failed", PodPhase::failed},  {"Unknown", PodPhase::unknown}, {"Succeeded", PodPhase::succeeded},
      {"Resting", PodPhase::unknown}};
  for (const auto& [text, expected] : cases)
    EXPECT_EQ(decode<Pod>(fixtures::pod("a", "u", "1", text))->phase, expected);
}

TEST(Codec, WhoManagesABudget) {
  const auto managed_by = [](const std::string& more) {
    return decode<PodDisruptionBudget>(
               R"({"kind":"PodDisruptionBudget","metadata":{"name":"b","namespace":"s","uid":"u","resourceVersion":"1")" +
               more + "}}")
        ->managed_by;
  };
  const std::string helm = R"(,"labels":{"app.kubernetes.io/managed-by":"Helm"})";
  EXPECT_EQ(managed_by(""), "");
  EXPECT_EQ(managed_by(helm), "Helm");
  EXPECT_EQ(managed_by(helm + R"(,"annotations":{"meta.helm.sh/release-name":"web"})"), "Helm, release web");
}

TEST(Codec, ReadsABudget) {
  using Op = LabelSelector::Operator;
  const auto pdb = decode<PodDisruptionBudget>(fixtures::pdb);
  ASSERT_TRUE(pdb) << pdb.error().message();
  PodDisruptionBudget expected;
  expected.ns = "shop";
  expected.name = "web";
  expected.uid = "pu";
  expected.resource_version = "5";
  expected.generation = 3;
  expected.observed_generation = 2;
  expected.selector =
      LabelSelector({{"app", Op::in, {"web"}}, {"tier", Op::not_in, {"db"}}, {"old", Op::does_not_exist, {}}});
  expected.min_available = "50%";
  expected.always_allow_unhealthy = true;
  expected.disruptions_allowed = 1;
  expected.current_healthy = 3;
  expected.desired_healthy = 2;
  expected.expected_pods = 4;
  expected.disrupted_pods = {{"web-1", at("2026-11-21T01:00:00Z")}};
  expected.condition_reason = "SyncFailed";
  expected.condition_message = "boom";
  EXPECT_EQ(*pdb, expected);
}

TEST(Codec, OfAListTheUnwantedIsLeftOutByItsOutline) {
  const auto budget = [](const std::string& name, const std::string& status) {
    return R"({"metadata":{"name":")" + name + R"(","namespace":"s","uid":"u-)" + name +
           R"(","resourceVersion":"1","generation":3},"spec":{"selector":{"matchLabels":{"app":")" + name +
           R"("}},"minAvailable":1},"status":)" + status + "}";
  };
  const auto decoded = [](const std::string& items) {
    return decode_list<PodDisruptionBudget>(fixtures::list("PodDisruptionBudgetList", "7", items),
                                            [](const PodDisruptionBudget& outline) {
                                              EXPECT_EQ(outline.uid, "u-" + outline.name);
                                              EXPECT_EQ(outline.ns, "s");
                                              return outline.selector->matches({{"app", "web"}});
                                            });
  };
  const auto list = decoded(budget("web", R"({"disruptionsAllowed":2})") + "," + budget("db", R"({"conditions":5})"));
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(list->meta.resource_version, "7");
  ASSERT_EQ(list->items.size(), 1u);
  EXPECT_EQ(list->items[0].name, "web");
  EXPECT_EQ(list->items[0].generation, 3);
  EXPECT_EQ(list->items[0].min_available, "1");
  EXPECT_EQ(list->items[0].disruptions_allowed, 2);
  EXPECT_FALSE(decoded(budget("web", R"({"conditions":5})"))) << "what is wanted must be right";
  EXPECT_FALSE(decoded(R"({"metadata":{"name":"db"}})")) << "an object without a UID is none";
}

TEST(Codec, SelectorOfABudgetMayBeAbsentEmptyOrUnknown) {
  const auto with = [](const std::string& spec) {
    return *decode<PodDisruptionBudget>(
        R"({"kind":"PodDisruptionBudget","metadata":{"name":"b","namespace":"s","uid":"u","resourceVersion":"1"},"spec":{)" +
        spec + "}}");
  };
  Pod pod;
  pod.ns = "s";
  EXPECT_FALSE(with(R"("maxUnavailable":1)").selects(pod));
  EXPECT_EQ(with(R"("maxUnavailable":1)").max_unavailable, "1");
  EXPECT_TRUE(with(R"("selector":{})").selects(pod));
  EXPECT_FALSE(with(R"("selector":{"matchExpressions":[{"key":"a","operator":"Near"}]})").selects(pod));
}

struct Refused {
  std::string body;
  const char* sentence;
};

TEST(Codec, RefusesWhatIsNotAPodList) {
  const std::string good = fixtures::list("PodList", "1", fixtures::pod("a", "u", "1"));
  const std::vector<Refused> cases = {
      {"", "empty"},
      {"<html><body>Sign in</body></html>", "not JSON"},
      {good.substr(0, good.size() - 2), "incomplete"},
      {good.substr(0, good.size() / 2), "incomplete"},
      {good + "x", "not JSON"},
      {"[]", "expected an object of kind PodList, got an array"},
      {"{}", "expected an object of kind PodList, got one without kind"},
      {R"({"kind":7})", "expected an object of kind PodList"},
      {fixtures::list("ConfigMapList", "1", ""), "expected an object of kind PodList, got kind ConfigMapList"},
      {fixtures::evicted, "expected an object of kind PodList, got kind Status"},
      {R"({"kind":"PodList","metadata":{},"items":[]})", "metadata.resourceVersion is missing"},
      {R"({"kind":"PodList","metadata":{"resourceVersion":"1"}})", "items are missing"},
      {R"({"kind":"PodList","metadata":{"resourceVersion":"1"},"items":{}})", "items is not an array"},
      {fixtures::list("PodList", "1", "7"), "got a number"},
      {fixtures::list("PodList", "1", R"({"kind":"Node"})"), "expected an object of kind Pod, got kind Node"},
      {fixtures::list("PodList", "1", fixtures::pod("a", "", "1")), "metadata.uid is missing"},
      {fixtures::list("PodList", "1", fixtures::pod("a", "u", "")), "metadata.resourceVersion is missing"},
      {fixtures::list("PodList", "1", fixtures::pod("", "u", "1")), "metadata.name is missing"},
  };
  for (const auto& [body, sentence] : cases) {
    const auto list = decode_list<Pod>(body);
    ASSERT_FALSE(list) << body;
    EXPECT_EQ(list.error().code(), Errc::decode) << body;
    EXPECT_THAT(list.error().message(), HasSubstr(sentence)) << body;
  }
}

TEST(Codec, RefusesFieldsOfTheWrongType) {
  const std::vector<std::pair<std::string, const char*>> cases = {
      {pod_with(R"("nodeName":5)", ""), "spec.nodeName is a number, not a string"},
      {pod_with(R"("priority":"high")", ""), "spec.priority is a string, not an integer"},
      {pod_with(R"("priority":3000000000)", ""), "32 bit"},
      {pod_with(R"("terminationGracePeriodSeconds":18446744073709551615)", ""), "64 bit"},
      {pod_with(R"("terminationGracePeriodSeconds":1.5)", ""), "not an integer"},
      {pod_with(R"("volumes":{})", ""), "spec.volumes is an object, not an array"},
      {pod_with(R"("tolerations":["x"])", ""), "not an object"},
      {pod_with("", R"("startTime":"yesterday")"), "status.startTime is 'yesterday', not a time"},
      {R"({"kind":"Pod","metadata":[],"spec":{}})", "metadata is an array"},
      {R"({"kind":"Pod","metadata":{"name":"a","labels":{"a":1}}})", "metadata.labels is a number"},
  };
  for (const auto& [body, sentence] : cases) {
    const auto pod = decode<Pod>(body);
    ASSERT_FALSE(pod) << body;
    EXPECT_EQ(pod.error().code(), Errc::decode);
    EXPECT_THAT(pod.error().message(), HasSubstr(sentence)) << body;
  }
}

TEST(Codec, NullIsAbsentAndUnknownFieldsAreIgnored) {
  const auto pod = decode<Pod>(
      R"({"kind":"Pod","new":[[{"x":{}}]],"metadata":{"name":"a","namespace":"s","uid":"u","resourceVersion":"1","labels":null,"deletionTimestamp":null},"spec":{"containers":null,"volumes":null},"status":null})");
  ASSERT_TRUE(pod) << pod.error().message();
  EXPECT_FALSE(pod->terminating());
  EXPECT_TRUE(decode_list<Pod>(R"({"kind":"PodList","metadata":{"resourceVersion":"1"},"items":null})")->items.empty());
}

// The decoder leaves managedFields, args and similar fields out of the tree while it parses the JSON. It must not
// cut anything else.
TEST(Codec, DroppedStructuresLeaveTheRestAlone) {
  const auto decoded = [](const std::string& metadata, const std::string& spec) {
    return decode<Pod>(R"({"kind":"Pod","metadata":{"name":"a","namespace":"s","uid":"u","resourceVersion":"1",)" +
                       metadata + R"(},"spec":{"nodeName":"n1",)" + spec + "}}");
  };
  const std::vector<std::pair<std::string, std::string>> harmless = {
      {R"("managedFields":[{"a":"]}\"\\","b":["[",{}]}])", R"("containers" : [ ])"},
      {R"("managedFields":[])", R"("affinity":{"x":"\\"},"containers":[{"args":["\"containers\":["]}])"},
      {R"("x":"managedFields")", R"("containers":null)"},
      {R"("x":"\"managedFields\":[")", R"("x":"\\")"},
      {R"("x":["managedFields","containers"])", R"("x":["containers",{"containers":[]}])"},
  };
  for (const auto& [metadata, spec] : harmless) {
    const auto pod = decoded(metadata + R"(,"labels":{"containers":"l"})", spec + R"(,"priority":7)");
    ASSERT_TRUE(pod) << metadata << ": " << pod.error().message();
    EXPECT_EQ(pod->priority, 7) << spec;
    EXPECT_THAT(pod->labels, ElementsAre(Pair("containers", "l"))) << metadata;
  }
  for (const char* broken : {R"("containers":[)", R"("containers":["x)", R"("containers":[{])", R"("containers":]")"}) {
    EXPECT_FALSE(decoded(R"("labels":{})", broken)) << broken;
  }
}

// The parser looks at blocks of bytes. The filler moves the end of the dropped structures to every position in such a
// block.
TEST(Codec, DroppedStructuresEndWhereverTheyEnd) {
  const std::string tricky = R"(,"]":"}]","\"}":["\\","\\\"]",{"a":[[],{}]}],"b":"\\\\"}])";
  for (std::size_t shift = 0; shift < 130; ++shift) {
    for (const std::string& filler :
         {std::string(shift, 'x'), std::string(2 * shift, '\\'), "[" + std::string(shift, '{')}) {
      const auto pod = decode<Pod>(
          R"({"kind":"Pod","metadata":{"name":"a","namespace":"s","uid":"u","resourceVersion":"1","managedFields":[{"m":")" +
          filler + "\"" + tricky + R"(,"labels":{"app":"web"}},"spec":{"containers":[{"args":[")" + filler +
          R"("]}],"priority":7}})");
      ASSERT_TRUE(pod) << filler << ": " << pod.error().message();
      EXPECT_THAT(pod->labels, ElementsAre(Pair("app", "web"))) << filler;
      EXPECT_EQ(pod->priority, 7) << filler;
    }
  }
}

TEST(Codec, WhatIsCutAnywhereIsRefused) {
  const std::string list = fixtures::list("PodList", "1", fixtures::full_pod);
  for (std::size_t size = 0; size < list.size(); ++size) {
    const auto decoded = decode_list<Pod>(std::string_view(list).substr(0, size));
    ASSERT_FALSE(decoded) << size;
    EXPECT_EQ(decoded.error().code(), Errc::decode);
  }
}

TEST(Codec, TheContinueTokenIsReadWithoutTheObjects) {
  EXPECT_EQ(*decode_continue_token(R"({"metadata":{"continue":"t"},"items":[{"metadata":{"continue":"other"}}]})"),
            "t");
  EXPECT_EQ(*decode_continue_token(R"({"items":[1,"x",{}],"metadata":{"resourceVersion":"1"}})"), "");
  EXPECT_EQ(*decode_continue_token(R"({"items":null})"), "");
  std::string many = "0";
  for (int i = 0; i < 400'000; ++i) many += ",0";
  EXPECT_EQ(*decode_continue_token(R"({"items":[)" + many + R"(],"metadata":{"continue":"t"}})"), "t");
  for (const char* odd :
       {"", "[]", "null", "x", R"({"metadata":[]})", R"({"metadata":{"continue":7}})", R"({"items":[)"}) {
    const auto token = decode_continue_token(odd);
    ASSERT_FALSE(token) << odd;
    EXPECT_EQ(token.error().code(), Errc::decode) << odd;
  }
}

// P12: an object with too many JSON values is refused, because each value takes more memory than its text. Commas and
// brackets inside a string do not count as values.
TEST(Codec, TooManyValuesAreRefusedAndAreCountedOutsideStrings) {
  const auto with_finalizers = [](const std::string& finalizers) {
    return R"({"kind":"Pod","metadata":{"name":"p","namespace":"shop","uid":"u","resourceVersion":"1","finalizers":[)" +
           finalizers + "]}}";
  };
  std::string many = "\"f\"";
  for (int i = 0; i < 300'000; ++i) many += ",\"f\"";
  const auto refused = decode<Pod>(with_finalizers(many));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::protocol);
  std::string commas;
  for (int i = 0; i < 100'000; ++i) commas += R"(,,,,{[\",)";
  const auto read = decode<Pod>(with_finalizers("\"" + commas + "\""));
  EXPECT_TRUE(read) << read.error().message();
}

TEST(Codec, AccessReviewsAndDaemonSets) {
  const auto review = decode_access_review(
      R"({"kind":"SelfSubjectAccessReview","spec":{},"status":{"allowed":true,"reason":"RBAC: allowed"}})");
  ASSERT_TRUE(review);
  EXPECT_TRUE(review->allowed);
  EXPECT_EQ(review->reason, "RBAC: allowed");
  EXPECT_FALSE(decode_access_review(R"({"kind":"SelfSubjectAccessReview","status":{}})"));
  EXPECT_FALSE(decode_access_review(fixtures::evicted));
  const auto daemon_set = decode<DaemonSet>(
      R"({"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{"name":"d","namespace":"s","uid":"u"},"spec":{"template":{}}})");
  ASSERT_TRUE(daemon_set);
  EXPECT_EQ(daemon_set->uid, "u");
  EXPECT_FALSE(decode<DaemonSet>(R"({"kind":"DaemonSet","metadata":{"name":"d","namespace":"s"}})"));
}

TEST(Codec, WriteAnswers) {
  EXPECT_TRUE(decode_write_answer(fixtures::evicted));
  EXPECT_TRUE(decode_write_answer(fixtures::pod("a", "u", "1")));
  for (const std::string body : {"", "{}", R"({"kind":"Status","status":"Perhaps"})", R"({"kind":"Eviction"})", "ok"}) {
    const auto answer = decode_write_answer(body);
    ASSERT_FALSE(answer) << body;
    EXPECT_EQ(answer.error().code(), Errc::decode);
  }
}

TEST(Codec, AnOwnerThatNamesNobodyIsNone) {
  for (const char* owner : {R"({"controller":true})", R"({"controller":true,"kind":"DaemonSet","uid":"u"})",
                            R"({"controller":true,"apiVersion":"v1","kind":"A","name":"a","uid":""})"}) {
    const auto pod = decode<Pod>(
        std::string(R"({"kind":"Pod","metadata":{"name":"p","namespace":"n","uid":"u","resourceVersion":"1",)") +
        R"("ownerReferences":[)" + owner + "]}}");
    ASSERT_TRUE(pod) << owner;
    EXPECT_FALSE(pod->controller) << owner;
  }
}

TEST(Codec, Times) {
  const std::vector<std::pair<const char*, const char*>> good = {
      {"2026-11-21T01:02:03Z", "2026-11-21T01:02:03.000000Z"},
      {"2026-11-21T01:02:03.5Z", "2026-11-21T01:02:03.500000Z"},
      {"2026-11-21T01:02:03.123456789Z", "2026-11-21T01:02:03.123456Z"},
      {"2026-11-21T01:02:03+01:30", "2026-11-20T23:32:03.000000Z"},
      {"2026-11-21T23:02:03-01:00", "2026-11-22T00:02:03.000000Z"},
      {"2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z"},
      {"1969-12-31T23:59:59.000001Z", "1969-12-31T23:59:59.000001Z"},
      {"0001-01-01T00:00:00Z", "1900-01-01T00:00:00.000000Z"},
      {"9999-12-31T23:59:59Z", "2190-01-01T00:00:00.000000Z"},
  };
  for (const auto& [text, expected] : good) {
    const auto time = parse_time(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(format_micro_time(*time), expected);
  }
  EXPECT_EQ(format_time(at("2026-11-21T01:02:03.9Z")), "2026-11-21T01:02:03Z");
  for (const char* text :
       {"", "2026-11-21", "2026-11-21T01:02:03", "2026-02-30T01:02:03Z", "2026-11-21T24:00:00Z", "2026-11-21T01:60:00Z",
        "2026-11-21 01:02:03Z", "2026-11-21T01:02:03.Z", "x026-11-21T01:02:03Z", "2026-11-21T01:02:03Zx",
        "2026-11-21T01:02:03+0100", "0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"}) {
    EXPECT_FALSE(parse_time(text)) << text;
  }
}

}  // namespace
}  // namespace haulout::k8s
