// A snapshot with the format of `kubectl get nodes,pods,pdb,rs,ds -A -o json`. No I/O.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace haulout::rehearse {

struct ASnapshot {
  using Json = nlohmann::json;

  void add_node(const std::string& name, const std::string& cpu) {
    items.push_back({{"apiVersion", "v1"},
                     {"kind", "Node"},
                     {"metadata", {{"name", name}, {"uid", name}, {"labels", {{"pool", "old"}}}}},
                     {"status",
                      {{"allocatable", {{"cpu", cpu}, {"pods", "110"}}},
                       {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }

  static Json workload(const std::string& kind, const std::string& name, Json spec) {
    spec["selector"] = {{"matchLabels", {{"app", name}}}};
    spec["template"] = {{"metadata", {{"labels", {{"app", name}}}}}, {"spec", pod_spec("500m")}};
    return {{"apiVersion", "apps/v1"},
            {"kind", kind},
            {"metadata", {{"name", name}, {"namespace", "shop"}, {"uid", name}}},
            {"spec", spec}};
  }

  static Json pod_spec(const std::string& cpu) {
    return {
        {"terminationGracePeriodSeconds", 20},
        {"containers",
         {{{"name", "main"}, {"image", "registry.example/main:1"}, {"resources", {{"requests", {{"cpu", cpu}}}}}}}}};
  }

  static Json pod(const std::string& name, const std::string& kind, const std::string& owner, const std::string& cpu,
                  const std::string& node = "n1") {
    Json spec = pod_spec(cpu);
    spec["nodeName"] = node;
    return {{"apiVersion", "v1"},
            {"kind", "Pod"},
            {"metadata",
             {{"name", name},
              {"namespace", "shop"},
              {"uid", name},
              {"labels", {{"app", owner}}},
              {"ownerReferences",
               {{{"apiVersion", "apps/v1"}, {"kind", kind}, {"name", owner}, {"uid", owner}, {"controller", true}}}}}},
            {"spec", spec},
            {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
  }

  void add_budget(int min_available) {
    items.push_back({{"apiVersion", "policy/v1"},
                     {"kind", "PodDisruptionBudget"},
                     {"metadata", {{"name", "web"}, {"namespace", "shop"}}},
                     {"spec", {{"minAvailable", min_available}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}}});
  }

  // Adds a budget that allows one unavailable pod.
  void add_narrow_budget(const std::string& app) {
    items.push_back({{"apiVersion", "policy/v1"},
                     {"kind", "PodDisruptionBudget"},
                     {"metadata", {{"name", "narrow"}, {"namespace", "shop"}}},
                     {"spec", {{"maxUnavailable", 1}, {"selector", {{"matchLabels", {{"app", app}}}}}}}});
  }

  // Gives a pod its own volume, which is attached to the pod's node.
  void give_volume(const std::string& pod, const char* mode = "ReadWriteOnce") {
    const std::string claim = "data-" + pod, volume = "pv-" + pod, node = item(pod)["spec"]["nodeName"];
    item(pod)["spec"]["volumes"].push_back({{"name", claim}, {"persistentVolumeClaim", {{"claimName", claim}}}});
    items.push_back({{"apiVersion", "v1"},
                     {"kind", "PersistentVolume"},
                     {"metadata", {{"name", volume}}},
                     {"spec",
                      {{"accessModes", {mode}},
                       {"csi", {{"driver", "disks.example.com"}, {"volumeHandle", "handle-" + volume}}},
                       {"claimRef", {{"namespace", "shop"}, {"name", claim}}}}}});
    items.push_back({{"apiVersion", "v1"},
                     {"kind", "PersistentVolumeClaim"},
                     {"metadata", {{"name", claim}, {"namespace", "shop"}}},
                     {"spec", {{"volumeName", volume}}}});
    items.push_back(
        {{"apiVersion", "storage.k8s.io/v1"},
         {"kind", "VolumeAttachment"},
         {"metadata", {{"name", "csi-" + volume}}},
         {"spec",
          {{"attacher", "disks.example.com"}, {"nodeName", node}, {"source", {{"persistentVolumeName", volume}}}}},
         {"status", {{"attached", true}}}});
  }

  Json& item(const std::string& name) {
    for (Json& each : items)
      if (each["metadata"]["name"] == name) return each;
    throw std::runtime_error("no " + name + " in the snapshot");
  }

  // Changes a node as if its kubelet had been silent for a while.
  void silence(const std::string& node) {
    item(node)["status"]["conditions"][0]["status"] = "Unknown";
    item(node)["spec"]["taints"] = {{{"key", "node.kubernetes.io/unreachable"}, {"effect", "NoSchedule"}},
                                    {{"key", "node.kubernetes.io/unreachable"}, {"effect", "NoExecute"}}};
  }

  std::string document() const { return Json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", items}}.dump(); }

  Json items = Json::array();
};

}  // namespace haulout::rehearse
