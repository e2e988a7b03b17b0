// A sentinel file, whose presence means that a reboot is needed: turns its content into an answer. Pure, except
// read_sentinel, which blocks while it reads the file.
#pragma once

#include "agent/hosts/host_root.hpp"
#include "agent/ports/backend.hpp"

namespace haulout::agent {

// The sentinel of transactional-update for a new snapshot (MicroOS, Leap Micro).
inline constexpr std::string_view suse_sentinel = "/run/reboot-needed";

// `yes` if the file exists; the reason is its first line that is not blank, or its name if all are blank. `no` if the
// file or a directory of its path does not exist. `unknown` if the file cannot be read.
Pending sentinel_answer(const Result<std::optional<std::string>>& content, const std::string& name);
Pending read_sentinel(const HostRoot& root, const std::string& path);

// `yes` if one of them is yes, else `unknown` if one is unknown, else `no`. If both are yes, the reasons of `first`
// come first.
Pending either(Pending first, Pending second);

}  // namespace haulout::agent
