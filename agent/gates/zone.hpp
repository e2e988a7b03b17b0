// A time zone: an IANA zone from the system's zoneinfo, or UTC, which needs no files. The only user of the date
// library. A small value; it borrows a zone that lives as long as the program. Changes to and from summer time are
// known as far as zoneinfo lists them, which is until the year 2037.
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

// Local date and time, as a clock on the wall shows it.
using LocalTime = std::chrono::local_seconds;

class Zone {
 public:
  Zone() = default;  // UTC
  // Errc::invalid if the name is unknown; the message suggests the nearest known name. Errc::unavailable if zoneinfo is
  // missing or cannot be used. Reads files.
  static Result<Zone> find(std::string_view name);

  const std::string& name() const { return name_; }
  LocalTime local(WallTime at) const;
  // The first instant at which the clock shows `shown`. If a change of the clock skips `shown`, the instant of the
  // change. Monotone: a later `shown` never has an earlier instant.
  WallTime instant(LocalTime shown) const;
  // Text for people: "Sat 2026-11-28 01:00 CET".
  std::string shown(WallTime at) const;

 private:
  std::string name_ = "UTC";
  const date::time_zone* zone_ = nullptr;  // borrowed; null for UTC
};

}  // namespace haulout::agent
