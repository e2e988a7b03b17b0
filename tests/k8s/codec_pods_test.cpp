// Fields that the decoder derives from the spec and the status of a Pod.
#include <gtest/gtest.h>

#include "k8s/codec.hpp"

namespace haulout::k8s {
namespace {

std::string with_status(const std::string& status) {
  return R"({"kind":"Pod","metadata":{"name":"web-0","namespace":"shop","uid":"u","resourceVersion":"1"},"status":{)" +
         status + "}}";
}

TEST(Codec, StorageControllersAreKnownByTheirSidecars) {
  const std::vector<std::pair<std::string, bool>> cases = {
      {"registry.k8s.io/sig-storage/csi-attacher:v4.6.1", true},
      {"mirror.example/csi-provisioner@sha256:00", true},
      {"registry.k8s.io/sig-storage/csi-node-driver-registrar:v2", false},
      {"registry.example/my-csi-provisioner-docs:1", false},
      {"", false},
  };
  for (const auto& [image, expected] : cases) {
    const auto pod = decode<Pod>(
        with_status(R"("containerStatuses":[{"image":"registry.example/main:1"},{"image":")" + image + R"("}])"));
    ASSERT_TRUE(pod) << pod.error().message();
    EXPECT_EQ(pod->storage_controller, expected) << image;
  }
}

TEST(Codec, WebhookServersAreKnownByTheirPorts) {
  const std::vector<std::pair<std::string, bool>> cases = {
      {R"({"name":"webhook-server","containerPort":9443})", true},
      {R"({"name":"metrics","containerPort":8080},{"name":"https-webhook","containerPort":15017})", true},
      {R"({"name":"https","containerPort":10250})", false},
      {R"({"containerPort":9443})", false},
      {"", false},
  };
  for (const auto& [ports, expected] : cases) {
    const auto pod = decode<Pod>(
        R"({"kind":"Pod","metadata":{"name":"webhook-0","namespace":"shop","uid":"u","resourceVersion":"1"},)"
        R"("spec":{"containers":[{"name":"main"},{"name":"webhook","ports":[)" +
        ports + "]}]}}");
    ASSERT_TRUE(pod) << pod.error().message();
    EXPECT_EQ(pod->webhook_server, expected) << ports;
  }
}

TEST(Codec, WhatKeepsAPodFromRunning) {
  const std::string unschedulable =
      R"("conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes"}])";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {unschedulable, "Unschedulable: 0/3 nodes"},
      {R"("conditions":[{"type":"PodScheduled","status":"True"}])", ""},
      {R"("containerStatuses":[{"state":{"waiting":{"reason":"ContainerCreating"}}}])", ""},
      {R"("containerStatuses":[{"state":{"running":{}}},{"state":{"waiting":{"reason":"ImagePullBackOff"}}}])",
       "ImagePullBackOff"},
      {R"("initContainerStatuses":[{"state":{"waiting":{"reason":"CrashLoopBackOff"}}}],"containerStatuses":[{"state":{"waiting":{"reason":"PodInitializing"}}}])",
       "CrashLoopBackOff"},
  };
  for (const auto& [status, expected] : cases) {
    const auto pod = decode<Pod>(with_status(status));
    ASSERT_TRUE(pod) << pod.error().message();
    EXPECT_EQ(pod->trouble, expected) << status;
  }
}

}  // namespace
}  // namespace haulout::k8s
