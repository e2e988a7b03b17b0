// Identification of the operating system, from /etc/os-release (os-release(5)).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/hosts/host_root.hpp"

namespace haulout::agent {

struct OsRelease {
  std::string id;  // "debian"; "linux" if the file has no ID
  std::vector<std::string> id_like{};
  std::string version{};
  std::string version_id{};
  std::string pretty_name{};
  bool operator==(const OsRelease&) const = default;

  // Returns true if `id` is `name`, or if `id_like` contains `name`.
  bool is_like(std::string_view name) const;
};

// Parses the text of os-release. Ignores comments and lines that are not an assignment of one word, or whose quote is
// not closed. If a name is assigned several times, the last assignment counts. Pure.
OsRelease parse_os_release(std::string_view text);

// Reads /etc/os-release, otherwise /usr/lib/os-release. Returns nothing if neither exists. Fails as HostRoot does.
Result<std::optional<OsRelease>> read_os_release(const HostRoot& root);

}  // namespace haulout::agent
