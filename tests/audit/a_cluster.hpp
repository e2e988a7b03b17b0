// A snapshot for audits: by default two nodes and a service of two pods, about which an audit finds nothing. No I/O.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "audit/audit.hpp"

namespace haulout::audit {

struct ACluster {
  using Json = sim::Json;

  ACluster() {
    for (const char* node : {"n1", "n2"}) add_node(node);
    add_deployment("web", 2);
    add_pod("web-a", "web", "n1");
    add_pod("web-b", "web", "n2");
    add_budget("web", {{"maxUnavailable", 1}}, 2, 2, 1);
  }

  void add_node(const std::string& name, const std::string& cpu = "4") {
    add({{"apiVersion", "v1"},
         {"kind", "Node"},
         {"metadata", {{"name", name}, {"uid", name}, {"labels", {{"kubernetes.io/hostname", name}}}}},
         {"status",
          {{"allocatable", {{"cpu", cpu}, {"pods", "110"}}},
           {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }

  // A Deployment with its ReplicaSet NAME-1.
  void add_deployment(const std::string& name, int replicas) {
    Json spec = {{"replicas", replicas}, {"selector", {{"matchLabels", {{"app", name}}}}}};
    spec["template"] = {{"metadata", {{"labels", {{"app", name}}}}}, {"spec", pod_spec()}};
    add(object("apps/v1", "Deployment", name, spec));
    Json set = object("apps/v1", "ReplicaSet", name + "-1", spec);
    set["metadata"]["ownerReferences"] = owner("apps/v1", "Deployment", name);
    add(set);
  }

  void add_stateful_set(const std::string& name, int replicas) {
    Json spec = {{"replicas", replicas}, {"selector", {{"matchLabels", {{"app", name}}}}}};
    spec["template"] = {{"metadata", {{"labels", {{"app", name}}}}}, {"spec", pod_spec()}};
    add(object("apps/v1", "StatefulSet", name, spec));
  }

  // A Ready pod of the Deployment, or of the StatefulSet if `kind` says so; without an owner if that is empty.
  void add_pod(const std::string& name, const std::string& app, const std::string& node,
               const std::string& kind = "ReplicaSet") {
    Json pod = object("v1", "Pod", name, pod_spec());
    pod["spec"]["nodeName"] = node;
    pod["metadata"]["labels"] = {{"app", app}, {"pod-template-hash", "1"}};
    if (!kind.empty())
      pod["metadata"]["ownerReferences"] = owner("apps/v1", kind, kind == "ReplicaSet" ? app + "-1" : app);
    pod["status"] = {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
    add(pod);
  }

  void add_budget(const std::string& app, Json spec, int expected, int desired, int allowed,
                  const std::string& name = {}) {
    spec["selector"] = {{"matchLabels", {{"app", app}}}};
    Json budget = object("policy/v1", "PodDisruptionBudget", name.empty() ? app : name, spec);
    budget["metadata"]["generation"] = 1;
    budget["status"] = {{"observedGeneration", 1},
                        {"expectedPods", expected},
                        {"currentHealthy", expected},
                        {"desiredHealthy", desired},
                        {"disruptionsAllowed", allowed}};
    add(budget);
  }

  // Gives the pod a claim whose volume exists on this host only.
  void give_local_volume(const std::string& pod, const std::string& host) {
    item("Pod",
         pod)["spec"]["volumes"] = {{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data-" + pod}}}}};
    add(object("v1", "PersistentVolumeClaim", "data-" + pod, {{"volumeName", "pv-" + pod}}));
    Json volume = object("v1", "PersistentVolume", "pv-" + pod, Json::object());
    volume["metadata"].erase("namespace");
    volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] = {
        {{"matchExpressions", {{{"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", {host}}}}}}};
    add(volume);
  }

  static Json pod_spec() {
    return {
        {"containers",
         {{{"name", "main"}, {"image", "registry.example/main:1"}, {"resources", {{"requests", {{"cpu", "500m"}}}}}}}}};
  }
  static Json object(const std::string& api, const std::string& kind, const std::string& name, Json spec) {
    return {{"apiVersion", api},
            {"kind", kind},
            {"metadata", {{"name", name}, {"namespace", "shop"}, {"uid", kind + "-" + name}}},
            {"spec", std::move(spec)}};
  }
  static Json owner(const std::string& api, const std::string& kind, const std::string& name) {
    return {{{"apiVersion", api}, {"kind", kind}, {"name", name}, {"uid", kind + "-" + name}, {"controller", true}}};
  }

  void add(Json json) { items.push_back(std::move(json)); }
  Json& item(const std::string& kind, const std::string& name) {
    for (Json& each : items)
      if (each["kind"] == kind && each["metadata"]["name"] == name) return each;
    throw std::runtime_error("no " + kind + " " + name);
  }
  void remove(const std::string& kind, const std::string& name) { std::erase(items, Json(item(kind, name))); }
  void set_ready(const std::string& pod, bool ready) {
    item("Pod", pod)["status"]["conditions"][0]["status"] = ready ? "True" : "False";
  }

  AuditInput input() const {
    AuditInput input;
    input.snapshot = {.documents = {{Json{{"kind", "List"}, {"items", items}}.dump()}}, .read_at = now()};
    input.source = "cluster.json";
    input.config = config;
    input.team_labels = {"team", "app.kubernetes.io/part-of"};
    return input;
  }
  static WallTime now() { return WallTime(std::chrono::seconds(1'800'000'000)); }

  std::vector<Json> items;
  agent::AgentConfig config;
};

inline Report audited(const AuditInput& input) {
  auto report = audit(input);
  if (!report) throw std::runtime_error(report.error().message());
  return *std::move(report);
}

// Returns "severity id owner" of each finding, sorted.
inline std::vector<std::string> brief(const Report& report) {
  std::vector<std::string> all;
  for (const Owner& owner : report.owners)
    for (const Finding& finding : owner.findings)
      all.push_back(std::string(to_string(finding.severity)) + " " + finding.id + " " + owner.name.text());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace haulout::audit
