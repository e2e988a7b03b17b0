// Makes the Host that --reboot-method describes, and the runner of the hooks.
#pragma once

#include <memory>

#include "agent/config/agent_config.hpp"
#include "agent/hooks/hook_programs.hpp"
#include "agent/ports/host.hpp"
#include "agent/service/host_access.hpp"

namespace haulout::agent {

// `config` must have been accepted by read_config(). Makes the Host without asking it anything; only Host::can_reboot()
// shows whether a reboot is permitted. The Host borrows from `host`.
std::unique_ptr<Host> make_host(const AgentConfig& config, const HostAccess& host);

// Hooks run as transient units if the host runs systemd, else as child processes of the agent. Errors: see HostRoot.
Result<std::unique_ptr<HookPrograms>> make_hooks(const AgentConfig& config, const HostAccess& host);

// Returns whether any part that this configuration and back end (such as "flatcar") need on this host uses D-Bus. Then
// the bus must be run.
bool uses_bus(const AgentConfig& config, std::string_view backend, const HostRoot& root);

}  // namespace haulout::agent
