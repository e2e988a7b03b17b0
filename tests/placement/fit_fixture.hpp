// Builders of nodes and pods as JSON, and functions that say whether the pods of a drained node fit elsewhere. Pure.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "placement/fit.hpp"

namespace haulout::placement {

inline Object object(Json json) {
  return std::make_shared<const Json>(std::move(json));
}

inline Json node_json(const std::string& name, const char* cpu = "2", const char* more = "{}") {
  Json node = {{"metadata", {{"name", name}, {"labels", {{"kubernetes.io/hostname", name}, {"zone", "a"}}}}},
               {"spec", Json::object()},
               {"status", {{"allocatable", {{"cpu", cpu}, {"memory", "4Gi"}, {"pods", "10"}}}}}};
  node.merge_patch(Json::parse(more));
  return node;
}

// Returns a pod of a ReplicaSet, on n1 unless `spec` names another node.
inline Json pod_json(const std::string& name, const char* cpu, const char* spec = "{}") {
  Json pod = {{"metadata",
               {{"name", name},
                {"namespace", "shop"},
                {"uid", name},
                {"labels", {{"app", name}}},
                {"ownerReferences", {{{"kind", "ReplicaSet"}, {"name", "rs"}, {"controller", true}}}}}},
              {"spec", {{"nodeName", "n1"}, {"containers", {{{"resources", {{"requests", {{"cpu", cpu}}}}}}}}}},
              {"status", {{"phase", "Running"}}}};
  pod["spec"].merge_patch(Json::parse(spec));
  return pod;
}

// Judges a drain of n1. All pods of n1 leave, except those whose name begins with "stays".
inline std::vector<PodFit> judged(const std::vector<Json>& nodes, const std::vector<Json>& pods) {
  ClusterView view;
  FitQuestion question{{}, {"n1"}};
  for (const Json& node : nodes) view.nodes.push_back(object(node));
  for (const Json& pod : pods) {
    view.pods.push_back(object(pod));
    if (text(pod, "/spec/nodeName") == "n1" && !name_of(pod).starts_with("stays")) question.leaving.insert(uid_of(pod));
  }
  return judge(view, question);
}

// Returns what the check keeps of these objects when it reads them from a page of a list.
inline std::vector<Json> as_read(const char* kind, const std::vector<Json>& items) {
  const Json list = {{"kind", kind}, {"metadata", {{"resourceVersion", "7"}}}, {"items", items}};
  std::vector<Object> objects;
  const auto read = std::string_view(kind) == "NodeList" ? read_nodes : read_pods;
  EXPECT_TRUE(read(list.dump(), objects));
  std::vector<Json> kept;
  for (const Object& object : objects) kept.push_back(*object);
  return kept;
}

inline std::vector<std::string> verdicts(const std::vector<PodFit>& fits) {
  std::vector<std::string> lines;
  for (const PodFit& fit : fits)
    lines.push_back(fmt::format("{} {}{}", fit.pod, to_string(fit.fit), fit.node.empty() ? "" : " " + fit.node));
  return lines;
}

inline std::string anti_affinity_to(const char* app, const char* key, const char* more = "") {
  return fmt::format(
      R"({{"affinity":{{"podAntiAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":[
          {{"topologyKey":"{}","labelSelector":{{"matchLabels":{{"app":"{}"}}}}{}}}]}}}}}})",
      key, app, more);
}

}  // namespace haulout::placement
