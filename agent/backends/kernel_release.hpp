// Finds an installed kernel that is newer than the running one. Pure.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace haulout::agent {

// Compares versions as dpkg does (deb-version(7), without epoch and revision). Compares runs of digits as numbers, and
// the text between them character by character: letters before other characters, "~" before everything, even the end.
std::weak_ordering compare_versions(std::string_view left, std::string_view right);

// The last part of a release, which names its build: "cloud-amd64" of "6.1.0-18-cloud-amd64", "generic" of
// "5.15.0-91-generic", "" of "6.1.55". A release candidate ("rc5") is part of the version.
std::string kernel_flavour(std::string_view release);

// The newest kernel that is newer than `running` and of the same flavour, from the files vmlinuz-RELEASE among the
// `names` in /boot. The boot loader chooses the flavour, and a reboot does not change it. If the running kernel has an
// initrd.img-RELEASE, a kernel without one does not count, because it cannot boot yet.
std::optional<std::string> newer_kernel(std::string_view running, const std::vector<std::string>& names);

}  // namespace haulout::agent
