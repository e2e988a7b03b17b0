// Hook executables as transient units of the host's systemd: the agent's own sandbox, or container, does not bind them,
// and a hook outlives its agent, whose successor follows it to its end. Their stdout is in the journal of their unit,
// haulout-hook-<point>-<name>.service; the end of their stderr is in the error.
#pragma once

#include "agent/dbus/bus.hpp"
#include "agent/hooks/hook_programs.hpp"

namespace haulout::agent {

class UnitHooks final : public HookPrograms {
 public:
  // The bus must outlive it.
  UnitHooks(HostRoot root, Bus& bus, std::string hooks_dir)
      : root_(std::move(root)), bus_(bus), hooks_dir_(std::move(hooks_dir)) {}

  Result<HookFiles> list(HookPoint point) override { return hook_files(root_, hooks_dir_, point); }
  // A cancellation leaves the unit alone.
  Task<> run(HookPoint point, std::string name, HookEnvironment environment, TimePoint deadline) override;

 private:
  HostRoot root_;
  Bus& bus_;
  std::string hooks_dir_;
};

}  // namespace haulout::agent
