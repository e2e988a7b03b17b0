// Runs hook executables as transient units of the host's systemd. The agent's sandbox or container does not restrict
// them. A hook continues if the agent ends, and the next agent follows it until it ends. Its stdout is in the journal
// of its unit, haulout-hook-<point>-<name>.service. The last line of its stderr is in the error.
#pragma once

#include "agent/dbus/bus.hpp"
#include "agent/hooks/hook_programs.hpp"

namespace haulout::agent {

class UnitHooks final : public HookPrograms {
 public:
  // Borrows `bus`.
  UnitHooks(HostRoot root, Bus& bus, std::string hooks_dir)
      : root_(std::move(root)), bus_(bus), hooks_dir_(std::move(hooks_dir)) {}

  Result<HookFiles> list(HookPoint point) override { return hook_files(root_, hooks_dir_, point); }
  // Cancelling leaves the unit running.
  Task<> run(HookPoint point, std::string name, HookEnvironment environment, TimePoint deadline) override;

 private:
  HostRoot root_;
  Bus& bus_;
  std::string hooks_dir_;
};

}  // namespace haulout::agent
