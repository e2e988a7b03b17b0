// Runs hook executables as child processes of the agent, for hosts without systemd. Cancelling run() kills the child.
#pragma once

#include "agent/hooks/hook_programs.hpp"

namespace haulout::agent {

class ChildHooks final : public HookPrograms {
 public:
  // Borrows the clock.
  ChildHooks(HostRoot root, Clock& clock, std::string hooks_dir)
      : root_(std::move(root)), clock_(clock), hooks_dir_(std::move(hooks_dir)) {}

  Result<HookFiles> list(HookPoint point) override { return hook_files(root_, hooks_dir_, point); }
  Task<> run(HookPoint point, std::string name, HookEnvironment environment, TimePoint deadline) override;

 private:
  HostRoot root_;
  Clock& clock_;
  std::string hooks_dir_;
};

}  // namespace haulout::agent
