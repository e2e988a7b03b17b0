// Marks that distinguish one boot of a machine from the next, beside the boot id that the agent reads. In a container,
// and in the sandbox of a unit in a container, that boot id is the one of the container's host, so a reboot does not
// change it. Pure.
#pragma once

#include <string>

#include "agent/ports/host.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {

struct BootMarks {
  std::string kubelet_boot_id{};  // status.nodeInfo.bootID of the Node; empty if the kubelet has reported none
  MachineStart start{};
  bool operator==(const BootMarks&) const = default;
};

// Compares the marks before and after a possible reboot, when the agent's own boot id has not changed. Returns a clause
// for people that names the evidence of a restart, or an empty string. If the kubelet now reports the agent's own boot
// id, it was only late, and that is no evidence.
std::string restart_shown(const BootMarks& before, const BootMarks& after, const std::string& own_boot_id);

// Returns true if the kubelet is Ready and reports a different boot id from the one that the agent reads. This is
// normal for a while after a boot.
bool has_foreign_boot_id(const k8s::Node& node, const std::string& own_boot_id);
// The message (subject, cause, remedy) for a node on which has_foreign_boot_id() stays true.
std::string foreign_boot_id(const k8s::Node& node, const std::string& own_boot_id);
// The message (subject, cause, remedy) for a machine that has rebooted and kept its boot id. `shown` is the evidence
// that restart_shown() returned.
std::string unchanged_boot_id(const std::string& shown, const std::string& node);

}  // namespace haulout::agent
