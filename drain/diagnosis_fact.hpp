// What a diagnosis is made of before it has held for long enough to be told.
#pragma once

#include <string>
#include <vector>

#include "retry/clock.hpp"

namespace haulout::drain {

// Whom a finding concerns. Neither pods nor volumes: the node as a whole.
struct Scope {
  std::vector<std::string> pods{};     // UIDs of those that wait, or stay, because of it; of advice: that it is about
  std::vector<std::string> volumes{};  // likewise, VolumeAttachments by name
  bool holds = true;                   // the drain up; otherwise it is advice
  bool operator==(const Scope&) const = default;
};

struct DiagnosisFact {
  std::string code;
  std::string subject;  // "PodDisruptionBudget shop/web", "pod shop/web-0", "node n1"
  std::string message;  // what, why and the way out
  Duration hold{};      // must have been true this long
  Scope scope{};
};

// Long enough for a controller to do its work, short enough to be told within 30 s.
inline constexpr Duration controller_hold = std::chrono::seconds(15);
// What usually passes by itself, such as the start of a replacement, is given as long as the 30 s allow.
inline constexpr Duration passing_hold = std::chrono::seconds(25);

}  // namespace haulout::drain
