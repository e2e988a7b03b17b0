// Lists the executables of a hook point: <hooks-dir>/<point>/NAME beneath the host's root, sorted by name. Reads the
// file system in place, so it blocks the thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/hooks/hook_point.hpp"
#include "agent/hosts/host_root.hpp"

namespace haulout::agent {

struct HookFiles {
  std::vector<std::string> names{};    // executables to run, in this order
  std::vector<std::string> skipped{};  // one sentence for each file that is not run, with the reason
};

// Returns no files if the directory does not exist. Returns Errc::invalid if users other than root and the agent's own
// user may change the directory or a file. The error names the file and the remedy, and the caller then runs no hook
// of this point.
Result<HookFiles> hook_files(const HostRoot& root, std::string_view hooks_dir, HookPoint point);

// Returns the path of one hook on the host.
std::string hook_path(std::string_view hooks_dir, HookPoint point, std::string_view name);

// Returns one sentence for each entry of the directory that belongs to no hook point and therefore never runs.
Result<std::vector<std::string>> stray_hooks(const HostRoot& root, std::string_view hooks_dir);

}  // namespace haulout::agent
