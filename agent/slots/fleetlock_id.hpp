// The id by which a FleetLock server identifies this machine. Blocks only to read a small file.
#pragma once

#include "agent/hosts/host_root.hpp"
#include "agent/slots/slot_rules.hpp"

namespace haulout::agent {

// Derives an application-specific id, 32 hexadecimal digits, from systemd's machine id (machine-id(5)). The algorithm
// is that of sd_id128_get_machine_app_specific(3), so that the machine id itself never leaves the machine. The
// application is Zincati's, because some servers compute the same id to find the Node of a lock. One of them is
// poseidon/fleetlock: it keeps a lock whose Node it does not find. Errc::invalid if `machine_id` is not a machine id.
// Pure.
Result<std::string> fleetlock_id(std::string_view machine_id);

// Reads etc/machine-id of the host and derives the id. Returns the Node's UID if the file is missing or empty.
// Errc::unavailable if the file cannot be read. Errc::invalid if it does not hold a machine id, for example
// "uninitialized" during a first boot: another id would be read later.
Result<std::string> fleetlock_id(const HostRoot& root, const OwnNode& node);

}  // namespace haulout::agent
