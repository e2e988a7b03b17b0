// The host that --reboot-method describes.
#pragma once

#include <memory>

#include "agent/config/option.hpp"
#include "agent/hooks/hook_programs.hpp"
#include "agent/ports/host.hpp"
#include "agent/service/host_access.hpp"

namespace haulout::agent {

// The configuration is one that read_config() has accepted. Makes it without asking it anything: whether it may reboot
// is seen by Host::can_reboot.
std::unique_ptr<Host> make_host(const AgentConfig& config, const HostAccess& host);

// Hooks run as transient units where the host runs systemd, else as children of this process. Errors: see HostRoot.
Result<std::unique_ptr<HookPrograms>> make_hooks(const AgentConfig& config, const HostAccess& host);

// Whether anything that this configuration and back end ("flatcar") lead to on this host speaks D-Bus, so that the bus
// must be run.
bool uses_bus(const AgentConfig& config, std::string_view backend, const HostRoot& root);

}  // namespace haulout::agent
