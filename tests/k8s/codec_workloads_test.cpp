// Decodes controllers of pods, their Scales, and pods that cannot be scheduled, as kube-apiserver 1.36 writes them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "k8s/codec.hpp"
#include "k8s/requests.hpp"

namespace haulout::k8s {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(CodecWorkloads, AReplicaSetKnowsItsDeployment) {
  const auto set = decode_workload(R"({"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{
    "name":"web-6d4b9","namespace":"shop","uid":"rs","annotations":{"deployment.kubernetes.io/revision":"3",
    "haulout.dev/max-unavailable":"25%"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web",
    "uid":"d","controller":true,"blockOwnerDeletion":true}]},"spec":{"replicas":4,"template":{"metadata":{}}},
    "status":{"replicas":4,"readyReplicas":3}})",
                                   "ReplicaSet");
  ASSERT_TRUE(set) << set.error().message();
  EXPECT_EQ(set->name, "web-6d4b9");
  EXPECT_EQ(set->uid, "rs");
  EXPECT_EQ(set->replicas, 4);
  EXPECT_EQ(set->ready_replicas, 3);
  EXPECT_THAT(set->annotations, ElementsAre(Pair("haulout.dev/max-unavailable", "25%")));
  ASSERT_TRUE(set->controller);
  EXPECT_EQ(*set->controller, (OwnerReference{"apps/v1", "Deployment", "web", "d", true}));
}

struct ReplicasCase {
  const char* kind;
  const char* spec;
  std::int32_t replicas;
};
class Replicas : public ::testing::TestWithParam<ReplicasCase> {};
TEST_P(Replicas, AnAbsentNumberIsTheDefaultOfTheKind) {
  const auto& c = GetParam();
  const auto workload =
      decode_workload(std::string(R"({"kind":")") + c.kind +
                          R"(","metadata":{"name":"a","namespace":"b","uid":"c"},"spec":)" + c.spec + "}",
                      c.kind);
  ASSERT_TRUE(workload) << workload.error().message();
  EXPECT_EQ(workload->replicas, c.replicas);
  EXPECT_FALSE(workload->controller);
}
INSTANTIATE_TEST_SUITE_P(All, Replicas,
                         ::testing::Values(ReplicasCase{"Deployment", "{}", 1},
                                           ReplicasCase{"Deployment", R"({"replicas":0})", 0},
                                           ReplicasCase{"StatefulSet", R"({"replicas":null})", 1},
                                           ReplicasCase{"Scale", "{}", 0},
                                           ReplicasCase{"Scale", R"({"replicas":2})", 2}));

TEST(CodecWorkloads, WhatMakesNoSenseIsRefused) {
  for (const char* body : {R"({"kind":"Deployment","metadata":{"name":"a","namespace":"b"},"spec":{}})",
                           R"({"kind":"Deployment","metadata":{"uid":"c"},"spec":{}})",
                           R"({"kind":"Deployment","metadata":{"name":"a","uid":"c"},"spec":{"replicas":"two"}})",
                           R"({"kind":"StatefulSet","metadata":{"name":"a","uid":"c"},"spec":{}})", "<html>"})
    EXPECT_FALSE(decode_workload(body, "Deployment")) << body;
}

TEST(CodecWorkloads, WhatCanBeScaled) {
  const auto scalable = decode_scalable(R"({"kind":"APIResourceList","apiVersion":"v1",
    "groupVersion":"apps.kruise.io/v1alpha1","resources":[
    {"name":"clonesets","singularName":"cloneset","namespaced":true,"kind":"CloneSet","verbs":["get"]},
    {"name":"clonesets/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale",
     "verbs":["get","patch","update"]},
    {"name":"clonesets/status","singularName":"","namespaced":true,"kind":"CloneSet","verbs":["get"]},
    {"name":"sidecarsets","singularName":"sidecarset","namespaced":false,"kind":"SidecarSet","verbs":["get"]}]})");
  ASSERT_TRUE(scalable) << scalable.error().message();
  EXPECT_THAT(*scalable, ElementsAre(Pair("CloneSet", "clonesets")));
  const auto nameless = decode_scalable(
      R"({"kind":"APIResourceList","resources":[{"name":"crs"},{"name":"crs/scale","kind":"Scale"},{"name":"","kind":"Cr"},{"name":"/scale"}]})");
  ASSERT_TRUE(nameless) << nameless.error().message();
  EXPECT_THAT(*nameless, IsEmpty());
  EXPECT_FALSE(decode_scalable(R"({"kind":"APIResourceList"})"));
  EXPECT_FALSE(decode_scalable(R"({"kind":"Status"})"));
}

TEST(CodecWorkloads, WhichPodsAServiceStandsFor) {
  const auto service = decode<Service>(
      R"({"kind":"Service","metadata":{"name":"guard","namespace":"hooks","uid":"u"},"spec":{"selector":{"app":"guard"}}})");
  ASSERT_TRUE(service) << service.error().message();
  EXPECT_EQ(service->key(), "hooks/guard");
  Pod pod;
  pod.ns = "hooks";
  pod.labels = {{"app", "guard"}, {"x", "y"}};
  EXPECT_TRUE(service->selects(pod));
  pod.ns = "shop";
  EXPECT_FALSE(service->selects(pod));
  for (const char* spec : {R"({"selector":{}})", R"({"selector":null})", "{}"}) {
    const auto none = decode<Service>(
        R"({"kind":"Service","metadata":{"name":"a","namespace":"shop","uid":"u"},"spec":)" + std::string(spec) + "}");
    ASSERT_TRUE(none) << none.error().message();
    EXPECT_FALSE(none->selector) << spec;
    EXPECT_FALSE(none->selects(pod)) << spec;
  }
}

TEST(CodecWorkloads, WhatTheSchedulerSaysOfAPod) {
  const auto says = [](const char* status, const char* reason) {
    const auto pod = decode<Pod>(fmt::format(
        R"({{"kind":"Pod","metadata":{{"name":"a","namespace":"s","uid":"u","resourceVersion":"1"}},"spec":{{}},)"
        R"("status":{{"conditions":[{{"type":"PodScheduled","status":"{}","reason":"{}","message":"0/3 nodes"}}]}}}})",
        status, reason));
    EXPECT_TRUE(pod) << pod.error().message();
    return pod ? pod->unschedulable : std::nullopt;
  };
  EXPECT_EQ(says("False", "Unschedulable"), "0/3 nodes");
  EXPECT_EQ(says("True", "Unschedulable"), std::nullopt);
  EXPECT_EQ(says("False", "SchedulingGated"), std::nullopt);
}

TEST(CodecWorkloads, TheirRequests) {
  EXPECT_EQ(get_workload("deployments", "shop", "web").value().target, "/apis/apps/v1/namespaces/shop/deployments/web");
  EXPECT_EQ(get_scale("apps.kruise.io/v1alpha1", "clonesets", "shop", "a b").value().target,
            "/apis/apps.kruise.io/v1alpha1/namespaces/shop/clonesets/a%20b/scale");
  EXPECT_EQ(get_scale("v1", "replicationcontrollers", "shop", "old").value().target,
            "/api/v1/namespaces/shop/replicationcontrollers/old/scale");
  EXPECT_EQ(discover("v1").value().target, "/api/v1");
  EXPECT_EQ(discover("a/../b").value().target, "/apis/a/..%2Fb");
}

}  // namespace
}  // namespace haulout::k8s
