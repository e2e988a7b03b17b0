// The reboot limit: stops a reboot that would change nothing, or that is one too many in a day. Pure. The node's record
// keeps the last reboots (see remembered.hpp). Each has the time of its request first, and of its boot once it is seen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/node/record.hpp"
#include "agent/ports/backend.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

struct Brake {
  std::string reason;                    // in CamelCase for the label: RebootLoop, TooManyReboots
  std::string message;                   // one sentence: thing, cause, remedy
  std::optional<WallTime> look_again{};  // when the limit may allow a reboot by time alone
  bool operator==(const Brake&) const = default;
};

inline constexpr std::size_t default_reboots_per_day = 3;

// Whether the operating system needs a reboot again for the same update as `last`, and has needed one ever since.
bool same_need(const PastReboot& last, const Pending& wanted);

// Returns nothing if the reboot is allowed, and if `wanted.need` is not `yes`. `past` holds reboots that were requested
// and reboots whose boot was seen, the oldest first. A reboot up to a day later than `now` counts as one of the last
// day, because the clock may have been set back.
//   RebootLoop      the last reboot that was seen had the same target, and the need never went away after it. Without
//                   targets, all reasons of `wanted` must be among those of that reboot; no reasons match any reboot
//   TooManyReboots  this reboot would be one more than `per_day` within 24 hours; 0 disables this limit
std::optional<Brake> reboot_brake(const std::vector<PastReboot>& past, const Pending& wanted, WallTime now,
                                  std::size_t per_day = default_reboots_per_day);

}  // namespace haulout::agent
