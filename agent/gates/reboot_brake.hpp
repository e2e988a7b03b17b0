// Whether one more reboot would be a loop: a reboot that changes nothing, or one too many in a day. Pure. The node's
// record keeps the last ones (see remembered.hpp), each from when it was asked for, then from when its boot was seen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/node/record.hpp"
#include "agent/ports/backend.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

struct Brake {
  std::string reason;                    // CamelCase for the label: RebootLoop, TooManyReboots
  std::string message;                   // one sentence: thing, cause, way out
  std::optional<WallTime> look_again{};  // when time alone may release it
  bool operator==(const Brake&) const = default;
};

inline constexpr std::size_t default_reboots_per_day = 3;

// The operating system wants again what this reboot was for, and has never said otherwise since.
bool same_need(const PastReboot& last, const Pending& wanted);

// Nothing: go on. `past` has what was asked for and what was seen, and is in the order in which they were made. A
// reboot at a later time than `now` counts as one of the last day: the clock was put back. Only for a need that is
// `yes`.
//   RebootLoop      the last reboot that was seen had the same target, or all of the reasons, and the need never went
//                   away after it; a need without reasons is the same as any
//   TooManyReboots  this one would be one more than `per_day` within 24 hours; 0: there is no such limit
std::optional<Brake> reboot_brake(const std::vector<PastReboot>& past, const Pending& wanted, WallTime now,
                                  std::size_t per_day = default_reboots_per_day);

}  // namespace haulout::agent
