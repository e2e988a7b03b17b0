#include "sim/machines.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace haulout::sim {

void Machines::set_node_ready(const std::string& node, const char* status, const char* reason, const char* message) {
  world_.store.modify({"nodes", "", node}, [&](Json& next) {
    set_condition(next, {{"type", "Ready"}, {"status", status}, {"reason", reason}, {"message", message}},
                  world_.wall_now());
  });
}

void Machines::set_pods_ready(const std::string& node, bool ready) {
  for (const Object& pod : world_.store.list("pods", {}, By::node, node)) {
    const bool runs = text(*pod, "/status/phase") == "Running";
    const bool never = !annotation(*pod, "sim.haulout.dev/never-ready").empty();
    if (!runs || (ready && (never || terminating(*pod)))) continue;
    world_.store.modify({"pods", ns_of(*pod), name_of(*pod)}, [&](Json& next) {
      for (const char* type : {"Ready", "ContainersReady"})
        set_condition(next, {{"type", type}, {"status", ready ? "True" : "False"}}, world_.wall_now());
    });
  }
}

void Machines::down(const std::string& node) {
  world_.switches.stopped_kubelets.insert(node);
  set_node_ready(node, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.");
  set_pods_ready(node, false);
}

void Machines::up(const std::string& node, const std::string& boot_id) {
  world_.switches.stopped_kubelets.erase(node);
  world_.store.modify({"nodes", "", node}, [&](Json& next) {
    if (!boot_id.empty()) next["status"]["nodeInfo"]["bootID"] = boot_id;
    set_condition(next,
                  {{"type", "Ready"},
                   {"status", "True"},
                   {"reason", "KubeletReady"},
                   {"message", "kubelet is posting ready status"}},
                  world_.wall_now());
  });
  kubelet_.resync(node);
  world_.agenda.after(world_.timing.pod_start, [this, node] {
    if (world_.switches.stopped_kubelets.count(node) == 0) set_pods_ready(node, true);
  });
}

void Machines::register_again(const std::string& node) {
  const Object before = world_.store.remove({"nodes", "", node});
  if (!before) return;
  Json next = {{"metadata", {{"name", node}}}, {"spec", Json::object()}};
  if (before->contains("status")) next["status"] = before->at("status");
  const Json& labels = at(*before, "/metadata/labels");
  if (labels.is_object())
    for (const auto& [key, value] : labels.items())
      if (!key.starts_with("haulout.dev/")) next["metadata"]["labels"][key] = value;
  Json& conditions = next["status"]["conditions"];
  if (conditions.is_array())
    conditions.erase(std::remove_if(conditions.begin(), conditions.end(),
                                    [](const Json& entry) { return entry.value("type", "").starts_with("Haulout"); }),
                     conditions.end());
  else
    next["status"].erase("conditions");
  world_.store.create("nodes", std::move(next));
}

std::string Machines::new_boot_id() {
  return fmt::format("b0070000-0000-4000-8000-{:012x}", ++boots_);
}

}  // namespace haulout::sim
