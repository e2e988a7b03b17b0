// What files of the host's operating system say: os-release(5) identifies the system, apt.conf(5) has the options of
// apt, and the locks of dpkg show whether packages are being installed.
#pragma once

#include <optional>
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
  std::string image_version{};  // of the system as a whole; empty if it is not built as an image
  bool operator==(const OsRelease&) const = default;

  // Returns true if `id` is `name`, or if `id_like` contains `name`.
  bool is_like(std::string_view name) const;
};

// Parses the text of os-release. Ignores comments and lines that are not an assignment of one word, or whose quote is
// not closed. If a name is assigned several times, the last assignment counts. Pure.
OsRelease parse_os_release(std::string_view text);

// Reads /etc/os-release, otherwise /usr/lib/os-release. Returns nothing if neither exists. Fails as HostRoot does.
Result<std::optional<OsRelease>> read_os_release(const HostRoot& root);

// The functions below read single options of apt's configuration. They do not follow includes or environment variables.

// Returns the value of an option ("Unattended-Upgrade::Automatic-Reboot") in the text; the last one if there are
// several. As in apt, names are not case-sensitive. Pure.
std::optional<std::string> apt_option(std::string_view text, std::string_view name);

// Returns the same from the files in /etc/apt/apt.conf.d, in apt's order, and then /etc/apt/apt.conf. Fails as HostRoot
// does.
Result<std::optional<std::string>> read_apt_option(const HostRoot& root, std::string_view name);

// Returns true if apt reads this value as yes. Pure.
bool apt_true(std::string_view value);

// Returns a clause that names the program that holds the lock of apt's front ends or of dpkg: "apt-get (process 77)
// holds /var/lib/dpkg/lock-frontend". While it does, packages may be installed in part. Returns an empty string if no
// program does, or if the files of the locks are not visible here. Fails as HostRoot does, or if a lock cannot be read.
Result<std::string> dpkg_locked_by(const HostRoot& root);

}  // namespace haulout::agent
