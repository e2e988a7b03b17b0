// Tests the findings that follow from the objects alone: for each kind a cluster that has it. The cluster that all rows
// begin with has none, so each row also shows what the finding depends on.
#include "audit/findings.hpp"

#include <gmock/gmock.h>

#include <functional>

#include "tests/audit/a_cluster.hpp"

namespace haulout::audit {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;
using Json = sim::Json;

struct Row {
  const char* name;
  std::function<void(ACluster&)> change;
  std::vector<std::string> found;
};

void expect(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    ACluster cluster;
    row.change(cluster);
    EXPECT_THAT(brief(audited(cluster.input())), UnorderedElementsAreArray(row.found)) << row.name;
  }
}

Json& status_of_budget(ACluster& cluster) {
  return cluster.item("PodDisruptionBudget", "web")["status"];
}

TEST(Findings, AHealthyClusterHasNone) {
  EXPECT_THAT(brief(audited(ACluster().input())), IsEmpty());
}

TEST(Findings, Budgets) {
  const std::string web = "shop/Deployment/web";
  expect({
      {"maxUnavailable 0",
       [](ACluster& cluster) {
         cluster.item("PodDisruptionBudget", "web")["spec"]["maxUnavailable"] = 0;
         status_of_budget(cluster)["disruptionsAllowed"] = 0;
       },
       {"blocks BudgetNeverOpens " + web}},
      {"minAvailable as many as there are",
       [](ACluster& cluster) {
         cluster.remove("PodDisruptionBudget", "web");
         cluster.add_budget("web", {{"minAvailable", 2}}, 2, 2, 0);
       },
       {"blocks BudgetNeverOpens " + web}},
      {"no disruption although all are healthy",
       [](ACluster& cluster) {
         status_of_budget(cluster)["desiredHealthy"] = 1;
         status_of_budget(cluster)["disruptionsAllowed"] = 0;
       },
       {"blocks BudgetNeverOpens " + web}},
      {"evictions in progress are no fault",
       [](ACluster& cluster) {
         status_of_budget(cluster) = {{"observedGeneration", 1},
                                      {"expectedPods", 3},
                                      {"currentHealthy", 2},
                                      {"desiredHealthy", 1},
                                      {"disruptionsAllowed", 0}};
       },
       {}},
      {"an unready pod that the budget holds",
       [](ACluster& cluster) {
         cluster.set_ready("web-a", false);
         status_of_budget(cluster)["currentHealthy"] = 1;
         status_of_budget(cluster)["disruptionsAllowed"] = 0;
         status_of_budget(cluster)["desiredHealthy"] = 2;
         status_of_budget(cluster)["expectedPods"] = 3;
       },
       {"blocks BrokenBudget " + web}},
      {"the same with AlwaysAllow: only the healthy pod waits",
       [](ACluster& cluster) {
         cluster.set_ready("web-a", false);
         cluster.item("PodDisruptionBudget", "web")["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow";
         status_of_budget(cluster)["currentHealthy"] = 1;
         status_of_budget(cluster)["disruptionsAllowed"] = 0;
         status_of_budget(cluster)["desiredHealthy"] = 1;
       },
       {"risk BrokenBudget " + web}},
      {"a second budget",
       [](ACluster& cluster) { cluster.add_budget("web", {{"maxUnavailable", 1}}, 2, 1, 1, "also"); },
       {"blocks TwoBudgets " + web}},
      {"a budget for nothing",
       [](ACluster& cluster) { cluster.add_budget("gone", {{"maxUnavailable", 1}}, 0, 0, 0); },
       {"note BudgetMatchesNothing shop/PodDisruptionBudget/gone"}},
  });
}

TEST(Findings, ThinServices) {
  expect({
      {"one replica",
       [](ACluster& cluster) {
         cluster.add_deployment("solo", 1);
         cluster.add_pod("solo-a", "solo", "n1");
       },
       {"risk SingleReplica shop/Deployment/solo"}},
      {"one replica of which there are two during a rollout",
       [](ACluster& cluster) {
         cluster.add_deployment("solo", 1);
         cluster.add_pod("solo-a", "solo", "n1");
         cluster.add_pod("solo-b", "solo", "n2");
       },
       {}},
      {"one replica that is surged",
       [](ACluster& cluster) {
         cluster.config.drain.guards.surge = drain::Surge::single_replica;
         cluster.add_deployment("solo", 1);
         cluster.add_pod("solo-a", "solo", "n1");
       },
       {"note SingleReplica shop/Deployment/solo"}},
      {"one replica that may not be evicted",
       [](ACluster& cluster) {
         cluster.config.drain.guards.single_replica = drain::SingleReplica::block;
         cluster.add_deployment("solo", 1);
         cluster.add_pod("solo-a", "solo", "n1");
       },
       {"blocks SingleReplica shop/Deployment/solo"}},
      {"one replica each of two controllers that share a budget",
       [](ACluster& cluster) {
         for (const char* mon : {"mon-a", "mon-b"}) {
           cluster.add_deployment(mon, 1);
           cluster.add_pod(std::string(mon) + "-1", mon, mon == std::string("mon-a") ? "n1" : "n2");
           cluster.item("Pod", std::string(mon) + "-1")["metadata"]["labels"]["kind"] = "mon";
         }
         cluster.add_budget("mons", {{"maxUnavailable", 1}}, 2, 2, 1);
         cluster.item("PodDisruptionBudget", "mons")["spec"]["selector"] = {{"matchLabels", {{"kind", "mon"}}}};
       },
       {"note SingleReplica shop/Deployment/mon-a", "note SingleReplica shop/Deployment/mon-b"}},
      {"the same, and pods of single replicas may not be evicted",
       [](ACluster& cluster) {
         cluster.config.drain.guards.single_replica = drain::SingleReplica::block;
         for (const char* mon : {"mon-a", "mon-b"}) {
           cluster.add_deployment(mon, 1);
           cluster.add_pod(std::string(mon) + "-1", mon, mon == std::string("mon-a") ? "n1" : "n2");
           cluster.item("Pod", std::string(mon) + "-1")["metadata"]["labels"]["kind"] = "mon";
         }
         cluster.add_budget("mons", {{"maxUnavailable", 1}}, 2, 2, 1);
         cluster.item("PodDisruptionBudget", "mons")["spec"]["selector"] = {{"matchLabels", {{"kind", "mon"}}}};
       },
       {"blocks SingleReplica shop/Deployment/mon-a", "blocks SingleReplica shop/Deployment/mon-b"}},
      {"all on one node",
       [](ACluster& cluster) { cluster.item("Pod", "web-b")["spec"]["nodeName"] = "n1"; },
       {"risk AllReplicasOnOneNode shop/Deployment/web"}},
      {"a quorum without a budget",
       [](ACluster& cluster) {
         cluster.add_stateful_set("etcd", 3);
         for (const char* pod : {"etcd-0", "etcd-1"}) cluster.add_pod(pod, "etcd", "n1", "StatefulSet");
         cluster.add_pod("etcd-2", "etcd", "n2", "StatefulSet");
       },
       {"risk QuorumUnprotected shop/StatefulSet/etcd"}},
      {"a quorum with a budget",
       [](ACluster& cluster) {
         cluster.add_stateful_set("etcd", 3);
         for (const char* pod : {"etcd-0", "etcd-1"}) cluster.add_pod(pod, "etcd", "n1", "StatefulSet");
         cluster.add_pod("etcd-2", "etcd", "n2", "StatefulSet");
         cluster.add_budget("etcd", {{"maxUnavailable", 1}}, 3, 2, 1);
       },
       {}},
      {"an even number is no quorum",
       [](ACluster& cluster) {
         cluster.add_stateful_set("cache", 2);
         cluster.add_pod("cache-0", "cache", "n1", "StatefulSet");
         cluster.add_pod("cache-1", "cache", "n2", "StatefulSet");
       },
       {}},
      {"a gang",
       [](ACluster& cluster) {
         for (const char* pod : {"web-a", "web-b"})
           cluster.item("Pod", pod)["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = "train";
       },
       {"risk GangBroken shop/JobSet/train"}},
      {"a gang of one pod",
       [](ACluster& cluster) {
         cluster.item("Pod", "web-a")["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = "train";
       },
       {}},
  });
}

TEST(Findings, Pods) {
  const auto use_host_path = [](ACluster& cluster, const sim::Json& path) {
    cluster.item("Pod", "web-a")["spec"]["volumes"] = {{{"name", "data"}, {"hostPath", path}}};
  };
  expect({
      {"no controller",
       [](ACluster& cluster) { cluster.add_pod("bare", "bare", "n1", ""); },
       {"risk UnmanagedPod shop/Pod/bare"}},
      {"no controller, which the drain refuses",
       [](ACluster& cluster) {
         cluster.config.drain.policy.unmanaged = drain::Treatment::refuse;
         cluster.add_pod("bare", "bare", "n1", "");
       },
       {"blocks UnmanagedPod shop/Pod/bare"}},
      {"a static pod is no finding",
       [](ACluster& cluster) {
         cluster.add_pod("static", "static", "n1", "");
         cluster.item("Pod", "static")["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "x";
       },
       {}},
      {"emptyDir",
       [](ACluster& cluster) {
         cluster.item("Pod", "web-a")["spec"]["volumes"] = {{{"name", "tmp"}, {"emptyDir", Json::object()}}};
       },
       {"note EmptyDir shop/Deployment/web"}},
      {"emptyDir, which the drain refuses",
       [](ACluster& cluster) {
         cluster.config.drain.policy.empty_dir = drain::Treatment::refuse;
         cluster.item("Pod", "web-a")["spec"]["volumes"] = {{{"name", "tmp"}, {"emptyDir", Json::object()}}};
       },
       {"blocks EmptyDir shop/Deployment/web"}},
      {"a directory of the machine",
       [&](ACluster& cluster) { use_host_path(cluster, {{"path", "/data/redis"}}); },
       {"risk HostPath shop/Deployment/web"}},
      {"a directory of the machine that the kubelet creates",
       [&](ACluster& cluster) { use_host_path(cluster, {{"path", "/var/library"}, {"type", "DirectoryOrCreate"}}); },
       {"risk HostPath shop/Deployment/web"}},
      {"what every machine has",
       [&](ACluster& cluster) { use_host_path(cluster, {{"path", "/etc/localtime"}, {"type", "File"}}); },
       {}},
      {"the whole machine", [&](ACluster& cluster) { use_host_path(cluster, {{"path", "/"}}); }, {}},
      {"a socket",
       [&](ACluster& cluster) { use_host_path(cluster, {{"path", "/srv/x.sock"}, {"type", "Socket"}}); },
       {}},
      {"a directory of a machine that the pod names",
       [&](ACluster& cluster) {
         use_host_path(cluster, {{"path", "/data/redis"}});
         cluster.item("Pod", "web-a")["spec"]["nodeSelector"] = {{"kubernetes.io/hostname", "n1"}};
       },
       {"risk NoRoom shop/Deployment/web", "risk PinnedPod shop/Deployment/web"}},
      {"eleven minutes",
       [](ACluster& cluster) { cluster.item("Pod", "web-a")["spec"]["terminationGracePeriodSeconds"] = 660; },
       {"risk LongGrace shop/Deployment/web"}},
      {"ten minutes",
       [](ACluster& cluster) { cluster.item("Pod", "web-a")["spec"]["terminationGracePeriodSeconds"] = 600; },
       {}},
      {"do-not-disrupt",
       [](ACluster& cluster) {
         cluster.item("Pod", "web-a")["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = "true";
       },
       {"blocks HeldByPolicy shop/Deployment/web"}},
      {"a finalizer of a pod that lives",
       [](ACluster& cluster) { cluster.item("Pod", "web-a")["metadata"]["finalizers"] = {"example.com/wait"}; },
       {}},
  });
}

TEST(Findings, AFinalizerHangs) {
  ACluster cluster;
  Json& metadata = cluster.item("Pod", "web-a")["metadata"];
  metadata["finalizers"] = {"example.com/wait"};
  metadata["deletionTimestamp"] = "2027-01-15T07:00:00Z";  // an hour ago
  metadata["deletionGracePeriodSeconds"] = 30;
  const Report report = audited(cluster.input());
  ASSERT_EQ(report.owners.size(), 1U);
  const Finding& finding = report.owners.front().findings.front();
  EXPECT_EQ(finding.id, "FinalizerHangs");
  EXPECT_THAT(finding.text, HasSubstr("example.com/wait"));
  EXPECT_THAT(finding.nodes, ElementsAre("n1"));

  metadata["deletionTimestamp"] = "2027-01-15T07:59:30Z";  // half a minute ago
  EXPECT_THAT(brief(audited(cluster.input())), IsEmpty());
}

TEST(Findings, BoundPods) {
  const auto pin = [](ACluster& cluster) {
    for (const auto& [pod, node] : {std::pair{"web-a", "n1"}, std::pair{"web-b", "n2"}})
      cluster.item("Pod", pod)["spec"]["nodeSelector"] = {{"kubernetes.io/hostname", node}};
  };
  const Json tolerate = {{{"key", "node.kubernetes.io/unschedulable"}, {"operator", "Exists"}}};
  expect({
      {"a host name in the selector", pin, {"risk NoRoom shop/Deployment/web", "risk PinnedPod shop/Deployment/web"}},
      {"a host name in the affinity",
       [](ACluster& cluster) {
         cluster.item("Pod", "web-a")["spec"]["affinity"]["nodeAffinity"]
                                     ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = {
             {{"matchFields", {{{"key", "metadata.name"}, {"operator", "In"}, {"values", {"n1"}}}}}}};
       },
       {"risk NoRoom shop/Deployment/web", "risk PinnedPod shop/Deployment/web"}},
      {"a label that two nodes have",
       [](ACluster& cluster) {
         for (const char* node : {"n1", "n2"}) cluster.item("Node", node)["metadata"]["labels"]["disk"] = "ssd";
         cluster.item("Pod", "web-a")["spec"]["nodeSelector"] = {{"disk", "ssd"}};
       },
       {}},
      {"a selector and a toleration of the cordon",
       [&](ACluster& cluster) {
         pin(cluster);
         for (const char* pod : {"web-a", "web-b"}) cluster.item("Pod", pod)["spec"]["tolerations"] = tolerate;
       },
       {"risk NoRoom shop/Deployment/web", "blocks PinnedPod shop/Deployment/web"}},
      {"a toleration of the cordon alone",
       [&](ACluster& cluster) { cluster.item("Pod", "web-a")["spec"]["tolerations"] = tolerate; },
       {"risk PinnedPod shop/Deployment/web"}},
      {"the node in the template",
       [](ACluster& cluster) { cluster.item("Deployment", "web")["spec"]["template"]["spec"]["nodeName"] = "n1"; },
       {"blocks PinnedPod shop/Deployment/web"}},
      {"a selector on a cluster of one node",
       [](ACluster& cluster) {
         cluster.remove("Node", "n2");
         cluster.remove("Pod", "web-b");
         for (const char* kind : {"Deployment", "ReplicaSet"})
           cluster.item(kind, kind[0] == 'D' ? "web" : "web-1")["spec"]["replicas"] = 1;
         cluster.item("Node", "n1")["metadata"]["labels"]["disk"] = "ssd";
         cluster.item("Pod", "web-a")["spec"]["nodeSelector"] = {{"disk", "ssd"}};
         cluster.remove("PodDisruptionBudget", "web");
       },
       {"risk NoRoom shop/Deployment/web", "risk SingleReplica shop/Deployment/web"}},
      {"a local volume",
       [](ACluster& cluster) { cluster.give_local_volume("web-a", "n1"); },
       {"risk VolumeOnOneNode shop/Deployment/web"}},
      {"a volume of another node", [](ACluster& cluster) { cluster.give_local_volume("web-a", "n2"); }, {}},
      {"a volume that only its own and a full node can reach",
       [](ACluster& cluster) {
         cluster.add_node("n3", "1");
         cluster.add_deployment("full", 1);
         cluster.add_pod("full-a", "full", "n3");
         cluster.item("Pod", "full-a")["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1";
         cluster.give_local_volume("web-a", "n1");
         cluster.item("PersistentVolume", "pv-web-a")["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
                                                     ["matchExpressions"][0]["values"] = {"n1", "n3"};
       },
       {"risk NoRoom shop/Deployment/web", "risk SingleReplica shop/Deployment/full"}},
      {"no room elsewhere",
       [](ACluster& cluster) {
         for (const char* pod : {"web-a", "web-b"})
           cluster.item("Pod", pod)["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3";
       },
       {"risk NoRoom shop/Deployment/web"}},
      {"no room elsewhere, which the drain refuses",
       [](ACluster& cluster) {
         cluster.config.drain.fit = drain::FitPolicy::block;
         for (const char* pod : {"web-a", "web-b"})
           cluster.item("Pod", pod)["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3";
       },
       {"blocks NoRoom shop/Deployment/web"}},
  });
}

Json webhook(const char* policy, const char* resource) {
  return {
      {"apiVersion", "admissionregistration.k8s.io/v1"},
      {"kind", "ValidatingWebhookConfiguration"},
      {"metadata", {{"name", "guard"}}},
      {"webhooks",
       {{{"name", "guard.example.com"},
         {"failurePolicy", policy},
         {"clientConfig", {{"service", {{"namespace", "shop"}, {"name", "guard"}}}}},
         {"rules",
          {{{"operations", {"CREATE"}}, {"apiGroups", {""}}, {"apiVersions", {"v1"}}, {"resources", {resource}}}}}}}}};
}

TEST(Findings, Webhooks) {
  const auto service = [](const char* app) {
    return ACluster::object("v1", "Service", "guard", {{"selector", {{"app", app}}}});
  };
  expect({
      {"fails closed",
       [](ACluster& cluster) { cluster.add(webhook("Fail", "pods/eviction")); },
       {"risk WebhookOnEvictions Cluster"}},
      {"fails open", [](ACluster& cluster) { cluster.add(webhook("Ignore", "pods/eviction")); }, {}},
      {"is not asked about evictions", [](ACluster& cluster) { cluster.add(webhook("Fail", "pods")); }, {}},
      {"has servers",
       [&](ACluster& cluster) {
         cluster.add(webhook("Fail", "pods/*"));
         cluster.add(service("web"));
       },
       {"risk WebhookOnEvictions Cluster"}},
      {"has no servers",
       [&](ACluster& cluster) {
         cluster.add(webhook("Fail", "pods/*"));
         cluster.add(service("gone"));
       },
       {"blocks WebhookOnEvictions Cluster"}},
      {"fails open and has no servers",
       [&](ACluster& cluster) {
         cluster.add(webhook("Ignore", "pods/*"));
         cluster.add(service("gone"));
       },
       {"note WebhookOnEvictions Cluster"}},
  });
}

TEST(Findings, TheWayOutSaysWhetherSurgeHelps) {
  const auto way_out = [](const std::function<void(ACluster&)>& change) {
    ACluster cluster;
    cluster.add_deployment("solo", 1);
    cluster.add_pod("solo-a", "solo", "n1");
    change(cluster);
    return audited(cluster.input()).owners.front().findings.front().way_out;
  };
  EXPECT_THAT(way_out([](ACluster&) {}),
              HasSubstr("a second replica on another node, or drain with --surge=single-replica"));
  EXPECT_THAT(
      way_out([](ACluster& cluster) { cluster.item("Deployment", "solo")["spec"]["strategy"]["type"] = "Recreate"; }),
      HasSubstr("--surge does not help, because the strategy of Deployment shop/solo is Recreate"));
}

TEST(Findings, TheWayOutSaysWhatTheOwnerCanDo) {
  const auto way_out = [](const std::function<void(ACluster&)>& change) {
    ACluster cluster;
    change(cluster);
    const Report report = audited(cluster.input());
    return report.owners.empty() ? std::string("no finding") : report.owners.front().findings.front().way_out;
  };
  const auto broken = [](ACluster& cluster, const Json& desired) {
    cluster.set_ready("web-a", false);
    status_of_budget(cluster)["currentHealthy"] = 1;
    status_of_budget(cluster)["disruptionsAllowed"] = 0;
    status_of_budget(cluster)["desiredHealthy"] = desired;
    status_of_budget(cluster)["expectedPods"] = 3;
  };
  EXPECT_THAT(way_out([&](ACluster& cluster) { broken(cluster, 2); }),
              AllOf(HasSubstr("unhealthyPodEvictionPolicy to AlwaysAllow"), HasSubstr("or repair the pods")));
  EXPECT_THAT(
      way_out([&](ACluster& cluster) { broken(cluster, 1); }),
      AllOf(StartsWith("repair the pods that are not Ready"), HasSubstr("unhealthyPodEvictionPolicy: AlwaysAllow")));
  EXPECT_EQ(way_out([&](ACluster& cluster) {
              broken(cluster, 1);
              cluster.item("PodDisruptionBudget", "web")["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow";
            }),
            "repair the pods that are not Ready");
  EXPECT_THAT(way_out([](ACluster& cluster) { cluster.add_pod("bare", "bare", "n1", ""); }),
              HasSubstr("a drain by hand needs --force, and agents evict it unless --unmanaged is refuse or skip"));
}

TEST(Findings, EveryKindIsListed) {
  std::set<std::string_view> ids;
  for (const FindingKind& kind : finding_kinds()) EXPECT_TRUE(ids.insert(kind.id).second) << kind.id;
  EXPECT_EQ(ids.size(), 19U);
}

TEST(Findings, OwnersAreSortedAndHaveTheirTeams) {
  ACluster cluster;
  cluster.add_deployment("solo", 1);
  cluster.add_pod("solo-a", "solo", "n1");
  cluster.item("Deployment", "solo")["metadata"]["labels"]["team"] = "payments";
  cluster.add_budget("web", {{"maxUnavailable", 1}}, 2, 1, 1, "also");
  cluster.item("Pod", "web-a")["metadata"]["labels"]["app.kubernetes.io/part-of"] = "shop-front";
  const Report report = audited(cluster.input());
  ASSERT_EQ(report.owners.size(), 2U);
  EXPECT_EQ(report.owners[0].name.text(), "shop/Deployment/web");
  EXPECT_EQ(report.owners[0].team, "shop-front");
  EXPECT_EQ(report.owners[0].findings[0].key, "TwoBudgets|shop|Deployment|web|shop/PodDisruptionBudget/also+web");
  EXPECT_EQ(report.owners[1].team, "payments");
  EXPECT_EQ(report.owners[1].pods, 1U);
  EXPECT_THAT(report.owners[1].findings[0].nodes, ElementsAre("n1"));
  EXPECT_THAT(report.owners[1].findings[0].pods, ElementsAre("shop/solo-a"));
}

}  // namespace
}  // namespace haulout::audit
