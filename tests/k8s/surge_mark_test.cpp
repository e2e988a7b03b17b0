// The mark of a surged pod, and what the decoder of pods makes of it.
#include "k8s/surge_mark.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "k8s/codec.hpp"
#include "k8s/objects.hpp"

namespace haulout::k8s {
namespace {

using Json = nlohmann::json;

const SurgeMark mark{"run", "jane@desk", WallTime{std::chrono::hours(24)}, "n1", "6d4b9", "web-6d4b9", "rs-uid", 3};

Json pod_json() {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", "web-1"},
            {"namespace", "shop"},
            {"uid", "u1"},
            {"resourceVersion", "7"},
            {"labels", {{"app", "web"}}},
            {"annotations", {{"haulout.dev/surged", encode_surge_mark(mark)}}}}}};
}

Pod pod_of(const Json& json) {
  auto pod = decode<Pod>(json.dump());
  EXPECT_TRUE(pod) << pod.error().message();
  return pod ? *pod : Pod();
}

TEST(SurgeMarkTest, IsReadAsItWasWritten) {
  EXPECT_EQ(parse_surge_mark(encode_surge_mark(mark)), mark);
}

TEST(SurgeMarkTest, ATextWithoutWhatGivesThePodBackIsNoMark) {
  for (const char* text : {"", "{", "[]", "null", "{}", R"({"hash":"a","owner":"b"})",
                           R"({"hash":1,"owner":"b","ownerUid":"c"})", R"({"hash":"","owner":"b","ownerUid":"c"})"})
    EXPECT_FALSE(parse_surge_mark(text)) << text;
  EXPECT_TRUE(parse_surge_mark(R"({"hash":"a","owner":"b","ownerUid":"c","ready":"many"})"));
}

TEST(SurgeMarkTest, ASurgedPodKeepsItsController) {
  const Pod pod = pod_of(pod_json());
  EXPECT_TRUE(pod.surged());
  ASSERT_TRUE(pod.controller);
  EXPECT_EQ(*pod.controller, (OwnerReference{"apps/v1", "ReplicaSet", "web-6d4b9", "rs-uid", true}));
}

TEST(SurgeMarkTest, AnotherControllerThatHasAdoptedThePodCounts) {
  Json json = pod_json();
  json["metadata"]["ownerReferences"] = Json::array(
      {{{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"name", "other"}, {"uid", "o"}, {"controller", true}}});
  const Pod pod = pod_of(json);
  EXPECT_TRUE(pod.surged());
  EXPECT_EQ(pod.controller->name, "other");
}

TEST(SurgeMarkTest, APodThatHasItsLabelAgainIsNotSurged) {
  Json json = pod_json();
  json["metadata"]["labels"]["pod-template-hash"] = "6d4b9";
  const Pod pod = pod_of(json);
  EXPECT_FALSE(pod.surged());
  EXPECT_FALSE(pod.controller) << "only its ReplicaSet can say that it has adopted the pod";
  EXPECT_EQ(pod.surge_mark, mark) << "the mark still has to be removed";
}

TEST(SurgeMarkTest, PatchesAreForThisPodOnlyAndUndoEachOther) {
  Pod pod = pod_of(pod_json());
  EXPECT_EQ(Json::parse(surge_patch(pod, mark)),
            (Json{{"metadata",
                   {{"uid", "u1"},
                    {"resourceVersion", "7"},
                    {"labels", {{"pod-template-hash", nullptr}}},
                    {"annotations", {{"haulout.dev/surged", encode_surge_mark(mark)}}}}}}));
  EXPECT_EQ(Json::parse(give_back_patch(pod)), (Json{{"metadata",
                                                      {{"uid", "u1"},
                                                       {"resourceVersion", "7"},
                                                       {"labels", {{"pod-template-hash", "6d4b9"}}},
                                                       {"annotations", {{"haulout.dev/surged", nullptr}}}}}}));
}

}  // namespace
}  // namespace haulout::k8s
