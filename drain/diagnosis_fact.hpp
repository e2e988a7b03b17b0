// A condition that holds now, as input of a DiagnosisBoard: it becomes a diagnosis when it has held for long enough.
// Pure data.
#pragma once

#include <string>
#include <vector>

#include "retry/clock.hpp"

namespace haulout::drain {

// What a diagnosis concerns. Without pods and volumes it concerns the node as a whole.
struct Scope {
  std::vector<std::string> pods{};     // UIDs of the pods that wait or stay because of it, or that the advice is about
  std::vector<std::string> volumes{};  // the same for VolumeAttachments, by name
  bool holds = true;                   // it keeps the drain from ending; false: it is only advice
  bool operator==(const Scope&) const = default;
};

struct DiagnosisFact {
  std::string code;
  std::string subject;  // "PodDisruptionBudget shop/web", "pod shop/web-0", "node n1"
  std::string message;  // what happens, why, and the remedy
  Duration hold{};      // how long the condition must hold before the diagnosis is raised
  Scope scope{};
};

// Long enough for a controller to do its work, short enough to raise the diagnosis within 30 s.
inline constexpr Duration controller_hold = std::chrono::seconds(15);
// For conditions that usually end without help, such as the start of a replacement. The longest hold time with which
// the diagnosis is still raised within 30 s.
inline constexpr Duration passing_hold = std::chrono::seconds(25);

}  // namespace haulout::drain
