#include "agent/service/make_host.hpp"

#include <algorithm>

#include "agent/dbus/logind_host.hpp"
#include "agent/dbus/unit_hooks.hpp"
#include "agent/hooks/hook_programs.hpp"
#include "agent/hosts/hosts.hpp"

namespace haulout::agent {
namespace {

bool on_the_bus(RebootMethod method) {
  return method == RebootMethod::logind || method == RebootMethod::systemd;
}

}  // namespace

std::unique_ptr<Host> make_host(const AgentConfig& config, const HostAccess& host) {
  std::vector<std::unique_ptr<Host>> hosts;
  std::vector<std::string> by_bus;
  const auto add_bus_host = [&] {
    if (by_bus.empty()) return;
    hosts.push_back(std::make_unique<LogindHost>(host.bus, host.root, std::exchange(by_bus, {})));
  };
  for (const RebootMethod method : config.reboot_methods) {
    if (method == RebootMethod::logind) by_bus.emplace_back("logind");
    if (method == RebootMethod::systemd) by_bus.emplace_back("systemd");
    if (on_the_bus(method)) continue;
    add_bus_host();
    if (method == RebootMethod::command)
      hosts.push_back(std::make_unique<CommandHost>(host.root, host.clock, host_command(config.reboot_command)));
  }
  add_bus_host();
  if (hosts.empty()) return std::make_unique<NoneHost>(host.root);
  if (hosts.size() == 1) return std::move(hosts.front());
  return std::make_unique<JoinedHost>(std::move(hosts));
}

Result<std::unique_ptr<HookPrograms>> make_hooks(const AgentConfig& config, const HostAccess& host) {
  auto units = systemd_booted(host.root);
  if (!units) return std::move(units).error();
  if (*units) return std::make_unique<UnitHooks>(host.root, host.bus, config.hooks_dir);
  return std::make_unique<ChildHooks>(host.root, host.clock, config.hooks_dir);
}

bool uses_bus(const AgentConfig& config, std::string_view backend, const HostRoot& root) {
  // Hooks run as systemd units. If it cannot be determined now whether the host runs systemd, use the bus: it may be
  // possible later.
  const auto units = systemd_booted(root);
  return !units || *units || backend == "flatcar" || backend == "rpm-ostree" ||
         std::any_of(config.reboot_methods.begin(), config.reboot_methods.end(), on_the_bus);
}

}  // namespace haulout::agent
