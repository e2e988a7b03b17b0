// Lists the executables in a directory of the host, as run-parts(8) does: hooks, and the programs that clean up a
// machine. Blocks the thread while it reads the file system. Borrows nothing after the call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/hosts/host_root.hpp"

namespace haulout::agent {

struct ProgramFiles {
  std::vector<std::string> names{};  // executables to run, in this order
  // One sentence, with the reason, for each file that is not run. Contains none of the files that package managers and
  // editors leave behind, as in run-parts(8).
  std::vector<std::string> skipped{};
};

// How messages name the programs of a directory.
struct ProgramWords {
  std::string_view one;      // "a hook"
  std::string_view refusal;  // what follows if others may change them: "the agent runs no hooks of this point"
};

// Returns true for names of files that package managers and editors leave behind, as in run-parts(8). Pure.
bool is_leftover_file(std::string_view name);

// Lists the executables in the directory, which is a path on the host, sorted by name. Links are followed. Returns no
// files if the directory does not exist. Fails with Errc::invalid if users other than root and this process's own user
// may change the directory, a file, a link on the way to one, or a directory that holds one of these: the error names
// it and the remedy. In a directory that only owners may delete from (/tmp), only the entry counts. Otherwise fails as
// HostRoot does.
Result<ProgramFiles> program_files(const HostRoot& root, const std::string& directory, const ProgramWords& words);

}  // namespace haulout::agent
