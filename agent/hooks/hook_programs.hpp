// Hooks that are executables on the host: lists them, and declares the interface that runs them, with an implementation
// that does not need systemd. agent/dbus/unit_hooks.hpp runs them as units of systemd.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/hooks/hook_point.hpp"
#include "agent/hosts/host_root.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

// Lists the executables of a hook point: <hooks-dir>/<point>/NAME beneath the host's root, sorted by name. Reads the
// file system in place, so it blocks the thread.
struct HookFiles {
  std::vector<std::string> names{};    // executables to run, in this order
  std::vector<std::string> skipped{};  // one sentence for each file that is not run, with the reason
};

// Returns no files if the directory does not exist. Fails with Errc::invalid if users other than root and the agent's
// own user may change the directory or a file. The error names the file and the remedy; the caller then runs no hook of
// this point.
Result<HookFiles> hook_files(const HostRoot& root, std::string_view hooks_dir, HookPoint point);

// Returns the path of one hook on the host.
std::string hook_path(std::string_view hooks_dir, HookPoint point, std::string_view name);

// Returns one sentence for each entry of the directory that belongs to no hook point and therefore never runs.
Result<std::vector<std::string>> stray_hooks(const HostRoot& root, std::string_view hooks_dir);

// Interface to the executables of the hook points. Tests have fake implementations.

using HookEnvironment = std::vector<std::pair<std::string, std::string>>;

class HookPrograms {
 public:
  virtual ~HookPrograms() = default;
  // Lists the executables of the point. Fails as hook_files() does.
  virtual Result<HookFiles> list(HookPoint point) = 0;
  // Runs one hook until it ends, with the point's name as its argument. Errors name the file. Fails with Errc::timeout
  // if the hook is still running at the deadline; it is then killed. Fails with Errc::unavailable if it cannot be
  // started or fails; the message has the last line that it printed. Cancellable.
  virtual Task<> run(HookPoint point, std::string name, HookEnvironment environment, TimePoint deadline) = 0;
};

// Runs hook executables as child processes of the agent, for hosts without systemd. Cancelling run() kills the child.
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
