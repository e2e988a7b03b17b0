// The mark of a surged pod, and what the decoder of pods makes of it.
#include "k8s/surge_mark.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "k8s/codec.hpp"
#include "k8s/objects.hpp"

namespace haulout::k8s {
namespace {

using Json = nlohmann::json;

const SurgeMark mark{"run", "jane@desk",     WallTime{std::chrono::hours(24)}, "n1", "6d4b9", "web-6d4b9", "rs-uid", 3,
                     "web", "deployment-uid"};

Json pod_json() {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", "web-1"},
            {"namespace", "shop"},
            {"uid", "u1"},
            {"resourceVersion", "7"},
            {"labels", {{"app", "web"}}},
            {"annotations", {{"haulout.dev/surged", encode_surge_mark(mark)}}}}},
          {"spec", {{"nodeName", "n1"}}}};
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
  for (const char* text :
       {"", "{", "[]", "null", "{}", R"({"hash":"a","owner":"b","node":"n"})",
        R"({"hash":1,"owner":"b","ownerUid":"c","node":"n"})", R"({"hash":"","owner":"b","ownerUid":"c","node":"n"})",
        R"({"hash":"!","owner":"b","ownerUid":"c","node":"n"})", R"({"hash":"a","owner":"b","ownerUid":"c"})"})
    EXPECT_FALSE(parse_surge_mark(text)) << text;
  EXPECT_TRUE(parse_surge_mark(R"({"hash":"a","owner":"b","ownerUid":"c","node":"n","ready":"many"})"));
}

TEST(SurgeMarkTest, ASurgedPodKeepsItsController) {
  const Pod pod = pod_of(pod_json());
  EXPECT_TRUE(pod.surged());
  ASSERT_TRUE(pod.controller);
  EXPECT_EQ(*pod.controller, (OwnerReference{"apps/v1", "ReplicaSet", "web-6d4b9", "rs-uid", true}));
}

TEST(SurgeMarkTest, AMarkThatDoesNotFitThePodDoesNotCount) {
  Json owned = pod_json();
  owned["metadata"]["ownerReferences"] = Json::array(
      {{{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"name", "other"}, {"uid", "o"}, {"controller", true}}});
  EXPECT_FALSE(pod_of(owned).surge_mark) << "another controller has adopted it";
  EXPECT_EQ(pod_of(owned).controller->name, "other");
  Json elsewhere = pod_json();
  elsewhere["spec"]["nodeName"] = "n2";
  EXPECT_FALSE(pod_of(elsewhere).surge_mark) << "it was copied from a pod of another node";
  EXPECT_FALSE(pod_of(elsewhere).controller);
}

TEST(SurgeMarkTest, APodThatIsGivenBackKeepsItsControllerUntilItIsAdopted) {
  Json json = pod_json();
  json["metadata"]["labels"]["pod-template-hash"] = "6d4b9";
  const Pod pod = pod_of(json);
  EXPECT_FALSE(pod.surged());
  EXPECT_TRUE(pod.given_back());
  EXPECT_FALSE(pod.owned);
  ASSERT_TRUE(pod.controller);
  EXPECT_EQ(pod.controller->uid, "rs-uid");
}

TEST(SurgeMarkTest, PatchesAreForThisPodInThisStateOnly) {
  const Pod pod = pod_of(pod_json());
  const auto metadata = [](const Json& more) {
    Json all = {{"uid", "u1"}, {"resourceVersion", "7"}};
    all.update(more);
    return Json{{"metadata", all}};
  };
  const std::string text = encode_surge_mark(mark);
  EXPECT_EQ(Json::parse(surge_patch(pod, mark)),
            metadata({{"labels", {{"pod-template-hash", nullptr}}}, {"annotations", {{"haulout.dev/surged", text}}}}));
  EXPECT_EQ(Json::parse(relabel_patch(pod)), metadata({{"labels", {{"pod-template-hash", "6d4b9"}}}}));
  EXPECT_EQ(Json::parse(unmark_patch(pod)), metadata({{"annotations", {{"haulout.dev/surged", nullptr}}}}));
}

}  // namespace
}  // namespace haulout::k8s
