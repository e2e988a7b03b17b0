// The times at which kured reboots nodes, as windows of Haulout. Pure.
//
// kured looks at the weekday of the present moment: with days Mon,Tue and times 23:00 to 05:00 it reboots on Tuesday at
// 02:00, because Tuesday is among its days, and not on Wednesday at 02:00. A window of Haulout belongs to the day on
// which it begins. So times over midnight become two windows, one after midnight and one before it.
#pragma once

#include <bitset>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace haulout::cli {

struct KuredWindow {
  std::vector<std::string> windows;  // none: kured may reboot at any time, unless there is a problem
  std::string note;                  // what a person should know about them; may be empty
  std::string problem;               // why there are no windows that mean the same; empty if there is no problem
};

// `days` are the parts of --reboot-days. `zone` is a name that both know.
KuredWindow kured_window(const std::vector<std::string>& days, const std::string& start, const std::string& end,
                         const std::string& zone);

// Returns the weekday that kured reads, 0 is Sunday; nothing if kured refuses it.
std::optional<unsigned> kured_weekday(std::string_view text);
// Returns the time of day that kured reads; nothing if kured refuses it.
std::optional<std::chrono::seconds> kured_time(std::string_view text);

}  // namespace haulout::cli
