// By which id a FleetLock server knows this machine.
#pragma once

#include "agent/hosts/host_root.hpp"
#include "agent/slots/slot_rules.hpp"

namespace haulout::agent {

// The machine id of systemd (machine-id(5)), turned into one for an application as sd_id128_get_machine_app_specific(3)
// does it, so that the machine id itself stays on the machine: 32 hexadecimal digits. The application is Zincati's: a
// server that looks for the Node behind an id (poseidon/fleetlock does, and keeps a lock whose Node it does not find)
// knows of no other. Errc::invalid when it is no machine id.
Result<std::string> fleetlock_id(std::string_view machine_id);

// From etc/machine-id of the host; the Node's UID where the host has none. Errc::unavailable when it cannot be read;
// Errc::invalid while it is not a machine id, as "uninitialized" during a first boot: an id taken before it is set
// would be another one afterwards.
Result<std::string> fleetlock_id(const HostRoot& root, const OwnNode& node);

}  // namespace haulout::agent
