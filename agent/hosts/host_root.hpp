// The files of the host beneath a directory (--host-root): a container mounts its host there, and several agents on one
// machine each get a host of their own.
//
// A path is the host's own ("/run/reboot-required"; the leading slash may be missing). Symbolic links, absolute ones
// too, and ".." are followed as the host itself would follow them: none leads out of the directory. Nothing is cached.
// Errors are Errc::unavailable and name the file, the cause and, where there is one, the way out; a directory that is
// itself not there is such an error, because then nothing is known about any file. Calls block as files do: these are
// small and mostly in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retry/task.hpp"

namespace haulout::agent {

class HostRoot {
 public:
  explicit HostRoot(std::string directory = "/");

  // Without a final slash, but for "/" itself.
  const std::string& directory() const { return directory_; }
  // For messages: "/run/x", or "/run/x (beneath /host)".
  std::string display(std::string_view path) const;

  // Where the file lies for this process, its own last link followed; it need not exist. Fails when links go in
  // circles, or when the path holds a NUL.
  Result<std::string> locate(std::string_view path) const;

  Result<bool> exists(std::string_view path) const;
  // The first `limit` bytes of a regular file; nothing when there is no such file, or a directory of its path is
  // missing or none.
  Result<std::optional<std::string>> read(std::string_view path, std::size_t limit) const;
  // The names in a directory, sorted; nothing when it is not there.
  Result<std::optional<std::vector<std::string>>> list(std::string_view path) const;
  // Replaces the file at once (nobody sees a half); makes the directories of its path.
  Result<> write(std::string_view path, std::string_view content) const;
  // Success also when it was not there.
  Result<> remove(std::string_view path) const;

 private:
  struct Place {
    std::string parent;
    std::string name;
  };
  Error problem(std::string_view verb, std::string_view path, int cause) const;
  Result<> check_directory() const;
  // The parent located, the last name as it stands: for what replaces or removes an entry rather than its target.
  Result<Place> place_of(std::string_view path) const;

  std::string directory_;
};

// /proc/sys/kernel/random/boot_id: another one after each boot.
Result<std::string> read_boot_id(const HostRoot& root);

// When process 1 began, in clock ticks since the kernel did: the 22nd field of /proc/1/stat, see proc(5).
Result<std::uint64_t> read_first_process(const HostRoot& root);

// Whether systemd was booted, as sd_booted(3) finds out. In a pod that does not mount /run/systemd: no.
Result<bool> systemd_booted(const HostRoot& root);

// /run/haulout/ready exists exactly while `ready` holds. Idempotent.
Result<> show_ready(const HostRoot& root, bool ready);

}  // namespace haulout::agent
