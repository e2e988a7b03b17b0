// Which of the installed kernels is newer than the one that runs. Pure.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace haulout::agent {

// As dpkg orders versions (deb-version(7), without epoch and revision): runs of digits by their number, what stands
// between them character by character, letters before other characters, "~" before everything, even the end.
std::weak_ordering compare_versions(std::string_view left, std::string_view right);

// The end of a release that names its build: "cloud-amd64" of "6.1.0-18-cloud-amd64", "generic" of "5.15.0-91-generic",
// "" of "6.1.55". A release candidate ("rc5") belongs to the version.
std::string kernel_flavour(std::string_view release);

// The newest kernel, by its file vmlinuz-RELEASE among the `names` of /boot, that is newer than `running` and of the
// same flavour: which flavour boots is the boot loader's choice, and a reboot would not change it. Where the running
// kernel has its initrd.img-RELEASE, a kernel still without one does not count: it would not boot.
std::optional<std::string> newer_kernel(std::string_view running, const std::vector<std::string>& names);

}  // namespace haulout::agent
