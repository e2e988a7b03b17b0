#include <gtest/gtest.h>

#include "k8s/codec.hpp"

namespace haulout::k8s {
namespace {

TEST(Codec, ClaimsOfAPod) {
  const auto pod = decode<Pod>(
      R"({"kind":"Pod","metadata":{"name":"a","namespace":"s","uid":"u","resourceVersion":"1"},"spec":{"volumes":[
          {"name":"data","persistentVolumeClaim":{"claimName":"data-db-0"}},
          {"name":"scratch","ephemeral":{"volumeClaimTemplate":{"spec":{"resources":{}}}}},
          {"name":"config","configMap":{"name":"c"}},{"name":"inline","csi":{"driver":"d"}}]}})");
  ASSERT_TRUE(pod) << pod.error().message();
  EXPECT_EQ(pod->claims, (std::vector<std::string>{"data-db-0", "a-scratch"}));
  EXPECT_EQ(pod->own_claims, std::vector<std::string>{"a-scratch"});
}

TEST(Codec, VolumeAttachment) {
  const auto attachment = decode<VolumeAttachment>(
      R"({"kind":"VolumeAttachment","apiVersion":"storage.k8s.io/v1",
          "metadata":{"name":"csi-1","uid":"u","resourceVersion":"7","deletionTimestamp":"2026-11-21T01:00:00Z",
                      "finalizers":["external-attacher/ebs.csi.aws.com"],"annotations":{"csi.alpha.kubernetes.io/node-id":"i"}},
          "spec":{"attacher":"ebs.csi.aws.com","nodeName":"n1","source":{"persistentVolumeName":"pvc-1"}},
          "status":{"attached":true,"attachmentMetadata":{"devicePath":"/dev/x"},
                    "attachError":{"time":"2026-11-21T01:00:05Z","message":"rpc error: full"},
                    "detachError":{"time":"2026-11-21T01:00:10Z","message":"rpc error: busy"}}})");
  ASSERT_TRUE(attachment) << attachment.error().message();
  VolumeAttachment expected{"csi-1",
                            "u",
                            "7",
                            "n1",
                            "ebs.csi.aws.com",
                            "pvc-1",
                            *parse_time("2026-11-21T01:00:00Z"),
                            "rpc error: busy",
                            true,
                            "rpc error: full"};
  EXPECT_EQ(*attachment, expected);
  const auto of_inline = decode<VolumeAttachment>(
      R"({"kind":"VolumeAttachment","metadata":{"name":"csi-2","uid":"u","resourceVersion":"7"},
          "spec":{"attacher":"d","nodeName":"n1","source":{"inlineVolumeSpec":{"csi":{}}}},"status":{"attached":true}})");
  ASSERT_TRUE(of_inline) << of_inline.error().message();
  EXPECT_EQ(of_inline->persistent_volume, "");
  EXPECT_FALSE(of_inline->deleting());
}

TEST(Codec, WhatANodeSaysOfVolumes) {
  const auto volumes = decode<NodeVolumes>(
      R"({"kind":"Node","metadata":{"name":"n1","uid":"u","resourceVersion":"7","labels":{"a":"b"}},
          "status":{"volumesInUse":["kubernetes.io/csi/ebs.csi.aws.com^vol-1"],"images":[{"names":["x"]}],
                    "volumesAttached":[{"name":"kubernetes.io/csi/ebs.csi.aws.com^vol-1","devicePath":""},
                                       {"name":"kubernetes.io/nfs/share","devicePath":""}]}})");
  ASSERT_TRUE(volumes) << volumes.error().message();
  EXPECT_EQ(volumes->held,
            (std::vector<std::string>{"kubernetes.io/csi/ebs.csi.aws.com^vol-1",
                                      "kubernetes.io/csi/ebs.csi.aws.com^vol-1", "kubernetes.io/nfs/share"}));
  const auto none = decode<NodeVolumes>(R"({"kind":"Node","metadata":{"name":"n1","uid":"u","resourceVersion":"7"}})");
  ASSERT_TRUE(none) << none.error().message();
  EXPECT_TRUE(none->held.empty());
}

// The expected name contains the SHA-256 of "vol-1ebs.csi.aws.comn1".
TEST(AttachmentName, IsAHashOfHandleDriverAndNode) {
  EXPECT_EQ(attachment_name("kubernetes.io/csi/ebs.csi.aws.com^vol-1", "n1"),
            "csi-ddbfb4470da740e26d0871a8e7cbfaaea0fe241c682170c176b52f44abb4a3be");
  EXPECT_EQ(attachment_name("kubernetes.io/nfs/share", "n1"), "");
  EXPECT_EQ(attachment_name("kubernetes.io/csi/ebs.csi.aws.com", "n1"), "");
}

TEST(Codec, PersistentVolumeAndItsClaim) {
  const auto volume = decode<PersistentVolume>(
      R"({"kind":"PersistentVolume","metadata":{"name":"pvc-1","uid":"u","resourceVersion":"7"},
          "spec":{"csi":{"driver":"d","volumeHandle":"h"},
                  "claimRef":{"kind":"PersistentVolumeClaim","namespace":"shop","name":"data-db-0","uid":"c"}},"status":{"phase":"Released"}})");
  ASSERT_TRUE(volume) << volume.error().message();
  EXPECT_EQ(volume->claim_ns, "shop");
  EXPECT_EQ(volume->claim_name, "data-db-0");
  EXPECT_EQ(volume->claim_uid, "c");
  EXPECT_EQ(volume->phase, "Released");
  const auto free = decode<PersistentVolume>(
      R"({"kind":"PersistentVolume","metadata":{"name":"pv","uid":"u","resourceVersion":"7"},"spec":{}})");
  ASSERT_TRUE(free) << free.error().message();
  EXPECT_EQ(free->claim_name, "");
}

TEST(Codec, WhereAPersistentVolumeCanBeUsed) {
  const auto hostnames = [](const std::string& terms) {
    return decode<PersistentVolume>(
               R"({"kind":"PersistentVolume","metadata":{"name":"pv","uid":"u","resourceVersion":"7"},"spec":{"nodeAffinity":
                   {"required":{"nodeSelectorTerms":[)" +
               terms + "]}}}}")
        ->hostnames;
  };
  const std::string n1 = R"({"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["n1"]}]})";
  const std::string zone = R"({"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]})";
  EXPECT_EQ(hostnames(n1), std::vector<std::string>{"n1"});
  EXPECT_TRUE(hostnames("").empty());
  EXPECT_TRUE(hostnames(zone).empty());
  EXPECT_TRUE(hostnames(n1 + "," + zone).empty()) << "either will do";
}

TEST(Codec, ClaimsAndNamespaces) {
  const auto claim = decode<PersistentVolumeClaim>(
      R"({"kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"shop","uid":"u"},
          "spec":{"volumeName":"pv-1"}})");
  ASSERT_TRUE(claim) << claim.error().message();
  EXPECT_EQ(claim->volume_name, "pv-1");
  const auto ns = decode<Namespace>(
      R"({"kind":"Namespace","metadata":{"name":"shop","uid":"u","deletionTimestamp":"2026-11-21T01:00:00Z"},
          "status":{"phase":"Terminating","conditions":[
          {"type":"NamespaceDeletionContentFailure","status":"False","message":"all gone"},
          {"type":"NamespaceFinalizersRemaining","status":"True","message":"some are left: example.com/x in 2"}]}})");
  ASSERT_TRUE(ns) << ns.error().message();
  EXPECT_EQ(ns->conditions, std::vector<std::string>{"some are left: example.com/x in 2"});
  EXPECT_EQ(ns->deletion_timestamp, *parse_time("2026-11-21T01:00:00Z"));
}

}  // namespace
}  // namespace haulout::k8s
