// What tells one boot of a machine from the next beside the boot id that the agent reads. In a container, and in the
// sandbox of a unit in a container, that is the host's: it stays the same however often the machine is rebooted. Pure.
#pragma once

#include <string>

#include "agent/ports/host.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {

struct BootMarks {
  std::string kubelet_boot_id{};  // status.nodeInfo.bootID of the Node; empty: the kubelet has reported none
  MachineStart start{};
  bool operator==(const BootMarks&) const = default;
};

// What shows that the machine has restarted between the two although the agent's own boot id is the same: a clause for
// people, or empty. A kubelet that reports our own boot id only now was late, and shows nothing.
std::string restart_shown(const BootMarks& before, const BootMarks& after, const std::string& own_boot_id);

// Whether the kubelet, which is Ready, reports another boot id than the agent reads. For a while after a boot it does.
bool has_foreign_boot_id(const k8s::Node& node, const std::string& own_boot_id);
// Thing, cause and way out of one that does so for longer.
std::string foreign_boot_id(const k8s::Node& node, const std::string& own_boot_id);
// The same for a machine that was rebooted, as `shown`, and kept its boot id.
std::string unchanged_boot_id(const std::string& shown, const std::string& node);

}  // namespace haulout::agent
