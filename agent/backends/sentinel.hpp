// A file whose presence asks for a reboot: what it says, as one of the three answers. Pure, but for read_sentinel.
#pragma once

#include "agent/hosts/host_root.hpp"
#include "agent/ports/backend.hpp"

namespace haulout::agent {

// transactional-update's mark of a new snapshot (MicroOS, Leap Micro).
inline constexpr std::string_view suse_sentinel = "/run/reboot-needed";

// yes when it is there, its first line being the reason, or its name where it is empty; no when it is not there or a
// directory of its path is missing; unknown when that cannot be told.
Pending sentinel_answer(const Result<std::optional<std::string>>& content, const std::string& name);
Pending read_sentinel(const HostRoot& root, const std::string& path);

// yes if one says yes, else unknown if one is unknown, else no. Reasons in order.
Pending either(Pending first, Pending second);

}  // namespace haulout::agent
