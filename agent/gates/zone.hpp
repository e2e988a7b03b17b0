// The clock on the wall at some place: an IANA zone of the system's zoneinfo, or UTC, which needs none. The only user
// of the date library. A small value; the zones it points to live as long as the program. Daylight saving is known as
// far as zoneinfo lists it, which is the year 2037.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace date {
class time_zone;  // NOLINT(readability-identifier-naming): the library's own name
}

namespace haulout::agent {

// What a clock on the wall shows.
using LocalTime = std::chrono::local_seconds;

class Zone {
 public:
  Zone() = default;  // UTC
  // Errc::invalid for a name that nobody knows, with the nearest known one; Errc::unavailable where zoneinfo is missing
  // or cannot be used. Reads files.
  static Result<Zone> find(std::string_view name);

  const std::string& name() const { return name_; }
  LocalTime local(WallTime at) const;
  // The first instant at which the clock shows `shown` or, where a change of the clock leaves that out, the instant of
  // the change. Monotone: a later time of the clock never has an earlier instant.
  WallTime instant(LocalTime shown) const;
  // "Sat 2026-11-28 01:00 CET".
  std::string shown(WallTime at) const;

 private:
  std::string name_ = "UTC";
  const date::time_zone* zone_ = nullptr;  // none: UTC
};

}  // namespace haulout::agent
