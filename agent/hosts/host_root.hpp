// Access to the host's files beneath a directory (--host-root): in a container, the directory at which the host is
// mounted; for several agents on one machine, one directory for each of them.
//
// A path is the host's own ("/run/reboot-required"; the leading slash is optional). Resolves symbolic links (also
// absolute ones) and ".." as the host itself does, so that none leads out of the directory. Caches nothing. Errors are
// Errc::unavailable, and name the file, the cause and, if there is one, the remedy. A missing host directory is an
// error, too, because then the state of every file is unknown. Calls block the thread while they access files, which
// are small and mostly in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retry/task.hpp"

namespace haulout::agent {

class HostRoot {
 public:
  explicit HostRoot(std::string directory = "/");

  // Returns the directory, without a final slash except for "/" itself.
  const std::string& directory() const { return directory_; }
  // Returns the path for messages: "/run/x", or "/run/x (beneath /host)".
  std::string display(std::string_view path) const;

  // Returns the path of the file for this process, with its last component resolved if that is a link; the file need
  // not exist. Fails if links form a loop, or if the path contains a NUL character.
  Result<std::string> locate(std::string_view path) const;
  // Returns, for this process, each path by which locate() finds the file: its directories, the links on the way, the
  // directories of those, and at last the file itself. Who may change one of them decides what the file is. Fails as
  // locate() does.
  Result<std::vector<std::string>> route(std::string_view path) const;

  Result<bool> exists(std::string_view path) const;
  // Returns the first `limit` bytes of a regular file; nothing if the file does not exist, or if a component of its
  // path is missing or not a directory.
  Result<std::optional<std::string>> read(std::string_view path, std::size_t limit) const;
  // Returns the names in a directory, sorted; nothing if the directory does not exist.
  Result<std::optional<std::vector<std::string>>> list(std::string_view path) const;
  // Replaces the file atomically, so that a reader never sees a partial file. Creates missing directories of its path.
  Result<> write(std::string_view path, std::string_view content) const;
  // Removes the file. Also succeeds if the file does not exist.
  Result<> remove(std::string_view path) const;

 private:
  struct Place {
    std::string parent;
    std::string name;
  };
  Error problem(std::string_view verb, std::string_view path, int cause) const;
  Result<> check_directory() const;
  // Resolves the parent directory, but not the last component, for operations on a link itself instead of its target.
  Result<Place> place_of(std::string_view path) const;
  // As locate(), and calls `passed` with each path on the way.
  Result<std::string> resolve(std::string_view path, const std::function<void(const std::string&)>& passed) const;

  std::string directory_;
};

// Reads /proc/sys/kernel/random/boot_id, which differs after each boot.
Result<std::string> read_boot_id(const HostRoot& root);

// Reads the start time of process 1, in clock ticks since the kernel started: the 22nd field of /proc/1/stat, see
// proc(5).
Result<std::uint64_t> read_first_process(const HostRoot& root);

// Returns true if systemd booted the host, tested as in sd_booted(3). False in a pod that does not mount /run/systemd.
Result<bool> systemd_booted(const HostRoot& root);

// Creates /run/haulout/ready if `ready` is true, and removes it otherwise. Idempotent.
Result<> show_ready(const HostRoot& root, bool ready);

}  // namespace haulout::agent
