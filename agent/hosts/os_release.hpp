// /etc/os-release (os-release(5)): what the operating system calls itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/hosts/host_root.hpp"

namespace haulout::agent {

struct OsRelease {
  std::string id;  // "debian"; "linux" where it does not say
  std::vector<std::string> id_like{};
  std::string version{};
  std::string version_id{};
  std::string variant_id{};
  std::string image_version{};
  std::string pretty_name{};
  bool operator==(const OsRelease&) const = default;

  // It is `name` or says that it is like it.
  bool is_like(std::string_view name) const;
};

// Pure. Lines that are no assignment, or whose value has an open quote, are passed over; the last assignment counts.
OsRelease parse_os_release(std::string_view text);

// /etc/os-release, else /usr/lib/os-release; nothing when neither is there. Errors: see HostRoot.
Result<std::optional<OsRelease>> read_os_release(const HostRoot& root);

}  // namespace haulout::agent
