// Makes the Host that --reboot-method describes, and the runner of the hooks.
#pragma once

#include <memory>

#include "agent/config/agent_config.hpp"
#include "agent/hooks/hook_programs.hpp"
#include "agent/ports/host.hpp"
#include "agent/service/host_access.hpp"

namespace haulout::agent {

// Makes the Host without a request to it; only Host::can_reboot() shows whether a reboot is permitted. Precondition:
// read_config() has accepted `config`. The Host borrows from `host`.
std::unique_ptr<Host> make_host(const AgentConfig& config, const HostAccess& host);

// Makes the runner of the hooks: as transient units if the host runs systemd, otherwise as child processes of the
// agent. Fails as HostRoot does.
Result<std::unique_ptr<HookPrograms>> make_hooks(const AgentConfig& config, const HostAccess& host);

// Returns true if a part that this configuration and this back end (such as "flatcar") need on this host uses D-Bus.
// Then the caller must run the bus.
bool uses_bus(const AgentConfig& config, std::string_view backend, const HostRoot& root);

}  // namespace haulout::agent
