// The machine of a Node as its kubelet reports it: another view of the same object of the API. Pure.
#pragma once

#include <string>
#include <vector>

#include "k8s/kind.hpp"

namespace haulout::k8s {

struct NodeMachine {
  std::string name;
  std::string uid;
  std::string resource_version;
  // From status.nodeInfo; empty if no kubelet has reported it.
  std::string machine_id;
  std::string boot_id;
  std::vector<std::string> addresses;  // InternalIP and ExternalIP of status.addresses
};

template <>
struct Kind<NodeMachine> {
  static constexpr std::string_view name = "Node";
  static constexpr Api api{"v1", "nodes", Scope::cluster, Names::ours, "Node", "Nodes"};
  static constexpr std::array<std::string_view, 4> dropped = {"managedFields", "images", "volumesInUse",
                                                              "volumesAttached"};

  static void read(const codec::Object& json, NodeMachine& machine) {
    codec::read_identity(json.object("metadata"), machine);
    json.object("status").each("addresses", [&](const codec::Object& address) {
      const std::string type = address.string("type");
      if (type == "InternalIP" || type == "ExternalIP") machine.addresses.push_back(address.string("address"));
    });
    const auto info = json.object("status").object("nodeInfo");
    machine.machine_id = info.string("machineID");
    machine.boot_id = info.string("bootID");
  }
};

}  // namespace haulout::k8s
