// Tests what `haulout explain` reads from the cluster besides pods and budgets, and what it reports about that.
#include "k8s/codec.hpp"
#include "tests/cli/people/people_fixture.hpp"

namespace haulout::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct ExplainFindings : PeopleTest {
  std::string ago(WallTime::duration time) const { return k8s::format_time(clock.wall_now() - time); }
  void add_namespace(const std::string& name, const Json& metadata = Json::object()) {
    Json ns = {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}};
    ns["metadata"].update(metadata);
    add(ns);
  }
  void add_stateful_set(const std::string& name, int replicas, const std::string& ns = "shop") {
    add({{"apiVersion", "apps/v1"},
         {"kind", "StatefulSet"},
         {"metadata", {{"name", name}, {"namespace", ns}, {"uid", "sts-" + name}}},
         {"spec",
          {{"replicas", replicas},
           {"selector", {{"matchLabels", {{"app", name}}}}},
           {"template", {{"metadata", {{"labels", {{"app", name}}}}}, {"spec", {{"containers", Json::array()}}}}}}}});
  }
  void add_pod(const std::string& name, const std::string& owner, const std::string& claim = "",
               const std::string& ns = "shop") {
    Json pod = {{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata",
                 {{"name", name},
                  {"namespace", ns},
                  {"labels", {{"app", owner}}},
                  {"ownerReferences",
                   {{{"apiVersion", "apps/v1"},
                     {"kind", "StatefulSet"},
                     {"name", owner},
                     {"uid", "sts-" + owner},
                     {"controller", true}}}}}},
                {"spec", {{"nodeName", "n1"}, {"containers", {{{"name", "m"}, {"image", "i"}}}}}},
                {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
    if (!claim.empty()) pod["spec"]["volumes"] = {{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", claim}}}}};
    add(pod);
  }
  void add_volume(const std::string& claim, const Json& spec = Json::object()) {
    add({{"apiVersion", "v1"},
         {"kind", "PersistentVolumeClaim"},
         {"metadata", {{"name", claim}, {"namespace", "shop"}}},
         {"spec", {{"volumeName", "pv-" + claim}}}});
    Json volume = {{"apiVersion", "v1"},
                   {"kind", "PersistentVolume"},
                   {"metadata", {{"name", "pv-" + claim}, {"annotations", {{"sim.haulout.dev/detaches-after", "1h"}}}}},
                   {"spec", {{"claimRef", {{"namespace", "shop"}, {"name", claim}}}}},
                   {"status", {{"phase", "Bound"}}}};
    volume["spec"].update(spec);
    add(volume);
  }
  void attach(const std::string& claim, const Json& metadata = Json::object(), const Json& status = Json::object()) {
    Json attachment = {
        {"apiVersion", "storage.k8s.io/v1"},
        {"kind", "VolumeAttachment"},
        {"metadata", {{"name", "csi-" + claim}}},
        {"spec",
         {{"attacher", "csi.example.com"}, {"nodeName", "n1"}, {"source", {{"persistentVolumeName", "pv-" + claim}}}}},
        {"status", status}};
    attachment["metadata"].update(metadata);
    add(attachment);
  }
  std::vector<std::string> codes() {
    EXPECT_EQ(command({"explain", "n1", "-o", "json"}), 0);
    std::vector<std::string> found;
    const Json json = Json::parse(out.text);
    for (const Json& finding : json["findings"])
      found.push_back(finding["code"].get<std::string>() + " " + finding["subject"].get<std::string>());
    return found;
  }
};

TEST_F(ExplainFindings, ANamespaceThatDoesNotDieHoldsItsPods) {
  set_state("n1", "pending");
  add_namespace("shop", {{"deletionTimestamp", ago(10min)}, {"finalizers", {"example.com/x"}}});
  add_namespace("well");
  add_pod("web-0", "web");
  add_pod("db-0", "db", "", "well");
  EXPECT_EQ(command({"explain", "n1"}), 0);
  EXPECT_THAT(text.text, AllOf(HasSubstr("NamespaceTerminating"), HasSubstr("[NamespaceStuckTerminating]"),
                               HasSubstr("kubectl get namespace shop -o yaml"), Not(HasSubstr("namespace well"))));
}

TEST_F(ExplainFindings, VolumesThatAreStuckFailOrAreNobodys) {
  for (const char* claim : {"used", "stuck", "failing", "nobodys"}) add_volume(claim);
  add_pod("db-0", "db", "used");
  attach("used");
  attach("stuck", {{"deletionTimestamp", ago(10min)}, {"finalizers", {"external-attacher/csi"}}});
  attach("failing", {{"deletionTimestamp", ago(1min)}, {"finalizers", {"external-attacher/csi"}}},
         {{"detachError", {{"message", "device busy"}}}});
  attach("nobodys");
  cluster.forbid("get", "statefulsets");
  EXPECT_THAT(codes(),
              ElementsAre("VolumeAttachmentLeaked VolumeAttachment csi-nobodys",
                          "VolumeDetachError PersistentVolume pv-failing", "VolumeStuck PersistentVolume pv-stuck"));
  EXPECT_EQ(command({"explain", "n1"}), 0);
  EXPECT_THAT(text.text, AllOf(HasSubstr("\nDiagnoses:\n"), HasSubstr("device busy"),
                               HasSubstr("kubectl describe volumeattachment csi-stuck")));
}

TEST_F(ExplainFindings, AVolumeOfThisNodeOnly) {
  const auto on = [](const char* node) {
    return Json{{"nodeAffinity",
                 {{"required",
                   {{"nodeSelectorTerms",
                     {{{"matchExpressions",
                        {{{"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", {node}}}}}}}}}}}}};
  };
  add_volume("here", on("n1"));
  add_volume("there", on("n2"));
  add_pod("db-0", "db", "here");
  add_pod("db-1", "db", "there");
  cluster.forbid("get", "statefulsets");
  EXPECT_THAT(codes(), ElementsAre("LocalVolume pod shop/db-0"));
}

TEST_F(ExplainFindings, PodsThatAreTheOnlyOnesOfTheirControllers) {
  add_stateful_set("one", 1);
  add_stateful_set("three", 3);
  add_pod("one-0", "one");
  add_pod("three-0", "three");
  EXPECT_THAT(codes(), ElementsAre("OnlyReplicaEvicted StatefulSet shop/one", "SurgeImpossible StatefulSet shop/one"));
}

TEST_F(ExplainFindings, GangsThatADrainWouldBreak) {
  for (const char* name : {"a", "b"})
    add({{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata", {{"name", name}, {"namespace", "ml"}, {"labels", {{"jobset.sigs.k8s.io/jobset-name", "train"}}}}},
         {"spec", {{"nodeName", "n1"}, {"containers", {{{"name", "m"}, {"image", "i"}}}}}},
         {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  EXPECT_THAT(codes(), ElementsAre("GangBroken JobSet ml/train"));
  EXPECT_EQ(command({"explain", "n1"}), 0);
  EXPECT_THAT(text.text,
              AllOf(HasSubstr("a drain with --gangs=evict, the default, would stop it: pods ml/a, ml/b are members;"),
                    HasSubstr("--gangs=wait")));
}

TEST_F(ExplainFindings, WhatMayNotBeReadIsSaidOnceAndNoFailure) {
  add_stateful_set("one", 1);
  add_volume("data");
  add_pod("one-0", "one", "data");
  add_pod("one-1", "one", "data");
  attach("data");
  for (const char* resource : {"namespaces", "statefulsets", "persistentvolumeclaims"}) cluster.forbid("get", resource);
  cluster.forbid("list", "volumeattachments");
  EXPECT_THAT(codes(), IsEmpty());
  EXPECT_EQ(Json::parse(out.text)["notKnown"].size(), 4u) << out.text;
  EXPECT_EQ(command({"explain", "n1"}), 0);
  EXPECT_THAT(text.text, AllOf(HasSubstr("\nUnknown:\n"), HasSubstr("  - how the node's volumes are attached: "),
                               HasSubstr("whether the namespaces of the node's pods are being deleted: "),
                               HasSubstr("whether volumes exist only on this node: "),
                               HasSubstr("whether pods are single replicas of their controllers: ")));
  for (const sim::AuditEntry& entry : cluster.audit()) EXPECT_THAT(entry.verb, AnyOf("get", "list"));
}

// For a node without pods, the command reads only objects of the kinds below. It reads no controllers, webhooks or
// volumes, for example.
TEST_F(ExplainFindings, OfAnEmptyNodeItReadsNoControllersOrVolumes) {
  EXPECT_THAT(codes(), IsEmpty());
  for (const sim::AuditEntry& entry : cluster.audit())
    EXPECT_THAT(entry.resource,
                AnyOf("nodes", "pods", "poddisruptionbudgets", "leases", "configmaps", "volumeattachments"));
}

}  // namespace
}  // namespace haulout::cli
