// The executables of a hook point: <hooks-dir>/<point>/NAME beneath the host's root, in the order of their names.
// Blocks as files do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/hooks/hook_point.hpp"
#include "agent/hosts/host_root.hpp"

namespace haulout::agent {

struct HookFiles {
  std::vector<std::string> names{};    // to be run, in this order
  std::vector<std::string> skipped{};  // a sentence for each that is not: not executable, or a name of no hook
};

// Nothing where the directory is not there. Errc::invalid, naming file and way out, when directory or file may be
// changed by others than root and this user: then nothing of it is run.
Result<HookFiles> hook_files(const HostRoot& root, std::string_view hooks_dir, HookPoint point);

// The host's path of one of them.
std::string hook_path(std::string_view hooks_dir, HookPoint point, std::string_view name);

// A sentence for each entry of the directory that belongs to no point, and so is never run.
Result<std::vector<std::string>> stray_hooks(const HostRoot& root, std::string_view hooks_dir);

}  // namespace haulout::agent
