#include "tests/bench/fleet_snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace haulout::bench {
namespace {

using Json = nlohmann::json;

constexpr std::size_t pods_of_owner = 60;
constexpr std::size_t namespaces = 20;
constexpr const char* time = "2026-11-27T10:00:00Z";

Json ready() {
  return Json::array({{{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", time}}});
}

Json node(std::size_t number) {
  const std::string name = fmt::format("node-{:04}", number);
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata",
           {{"name", name},
            {"uid", "uid-of-" + name},
            {"creationTimestamp", time},
            {"labels",
             {{"kubernetes.io/hostname", name}, {"topology.kubernetes.io/zone", fmt::format("z{}", number % 3)}}}}},
          {"spec", Json::object()},
          {"status", {{"allocatable", {{"cpu", "16"}, {"memory", "64Gi"}, {"pods", "110"}}}, {"conditions", ready()}}}};
}

Json reference(const char* kind, const std::string& name) {
  return Json::array({{{"apiVersion", "apps/v1"},
                       {"kind", kind},
                       {"name", name},
                       {"uid", fmt::format("uid-of-{}-{}", kind, name)},
                       {"controller", true}}});
}

Json object(const char* version, const char* kind, const std::string& ns, const std::string& name) {
  return {{"apiVersion", version},
          {"kind", kind},
          {"metadata",
           {{"name", name}, {"namespace", ns}, {"uid", fmt::format("uid-of-{}-{}", kind, name)}, {"generation", 1}}}};
}

// A Deployment with its ReplicaSet, its budget and its pods.
class Owner {
 public:
  Owner(std::size_t number, std::size_t pods)
      : ns_(fmt::format("team-{}", number % namespaces)), app_(fmt::format("app-{}", number)), pods_(pods) {}

  void add_to(Json& items, std::size_t nodes, std::size_t first_pod) const {
    const std::string of_set = app_ + "-abc";
    const Json labels = {{"app", app_}, {"pod-template-hash", "abc"}};
    const Json spec = {
        {"terminationGracePeriodSeconds", 30},
        {"containers", Json::array({{{"name", "server"},
                                     {"image", "registry.example/server:1"},
                                     {"resources", {{"requests", {{"cpu", "250m"}, {"memory", "512Mi"}}}}}}})}};
    const Json of_template = {{"metadata", {{"labels", labels}}}, {"spec", spec}};
    Json deployment = object("apps/v1", "Deployment", ns_, app_);
    deployment["spec"] = {
        {"replicas", pods_}, {"selector", {{"matchLabels", {{"app", app_}}}}}, {"template", of_template}};
    deployment["status"] = {{"observedGeneration", 1}, {"replicas", pods_}, {"readyReplicas", pods_}};
    Json set = object("apps/v1", "ReplicaSet", ns_, of_set);
    set["metadata"]["labels"] = labels;
    set["metadata"]["ownerReferences"] = reference("Deployment", app_);
    set["spec"] = {{"replicas", pods_}, {"selector", {{"matchLabels", labels}}}, {"template", of_template}};
    set["status"] = {{"replicas", pods_}};
    Json budget = object("policy/v1", "PodDisruptionBudget", ns_, app_);
    budget["spec"] = {{"maxUnavailable", "10%"}, {"selector", {{"matchLabels", {{"app", app_}}}}}};
    for (Json* each : {&deployment, &set, &budget}) items.push_back(std::move(*each));
    for (std::size_t i = 0; i < pods_; ++i) {
      Json pod = object("v1", "Pod", ns_, fmt::format("{}-{:05}", of_set, i));
      pod["metadata"]["creationTimestamp"] = time;
      pod["metadata"]["labels"] = labels;
      pod["metadata"]["ownerReferences"] = reference("ReplicaSet", of_set);
      pod["spec"] = spec;
      pod["spec"]["nodeName"] = fmt::format("node-{:04}", (first_pod + i) % nodes);
      pod["status"] = {
          {"phase", "Running"},
          {"startTime", time},
          {"conditions", ready()},
          {"containerStatuses",
           Json::array({{{"name", "server"}, {"ready", true}, {"state", {{"running", {{"startedAt", time}}}}}}})}};
      items.push_back(std::move(pod));
    }
  }

 private:
  std::string ns_;
  std::string app_;
  std::size_t pods_;
};

}  // namespace

std::string fleet_snapshot(std::size_t nodes, std::size_t pods_of_node) {
  Json items = Json::array();
  for (std::size_t i = 0; i < nodes; ++i) items.push_back(node(i));
  const std::size_t pods = nodes * pods_of_node;
  for (std::size_t first = 0, owner = 0; first < pods; first += pods_of_owner, ++owner)
    Owner(owner, std::min(pods_of_owner, pods - first)).add_to(items, nodes, first);
  return Json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}}.dump();
}

}  // namespace haulout::bench
