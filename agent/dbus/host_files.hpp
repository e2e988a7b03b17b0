// The few files beneath the host's root that the D-Bus hosts and back ends read and write. Blocks as files do. Errors
// are Errc::unavailable and name the file, the cause and the way out.
#pragma once

#include <filesystem>
#include <string>

#include "retry/result.hpp"

namespace haulout::agent {

class HostFiles {
 public:
  explicit HostFiles(std::string root) : root_(std::move(root)) {}

  // proc/sys/kernel/random/boot_id
  Result<std::string> boot_id() const;
  // run/haulout/ready exists exactly while `ready` holds.
  Result<> show_ready(bool ready) const;
  // Whether systemd was booted, as sd_booted(3) finds out. In a pod that does not mount run/systemd: false.
  bool systemd_booted() const;
  // VERSION of etc/os-release (os-release(5)).
  Result<std::string> os_version() const;

 private:
  std::filesystem::path at(const char* relative) const { return root_ / relative; }

  std::filesystem::path root_;
};

// The value of `key` in the text of an os-release file, without its quotes; empty when there is none. Pure.
std::string os_release_value(std::string_view text, std::string_view key);

}  // namespace haulout::agent
