// Interprets the answers of logind and systemd. Pure. Sources: org.freedesktop.login1(5), org.freedesktop.systemd1(5).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "retry/task.hpp"

namespace haulout::agent {

// One row of ListInhibitors.
struct Inhibitor {
  std::string what;  // for example "shutdown:sleep"
  std::string who;
  std::string why;
  std::string mode;  // block, block-weak, delay
  std::uint32_t uid = 0;
  std::uint32_t pid = 0;
};

// Succeeds for "yes", and for an answer that reports only inhibitors, which judge_inhibitors() checks separately. `uid`
// is the agent's user as the bus sees it.
Result<> judge_can_reboot(std::string_view answer, std::uint32_t uid);

// Returns whether a colon-separated list, as in the property BlockInhibited, contains "shutdown".
bool names_shutdown(std::string_view what);

// Succeeds if no inhibitor blocks a shutdown. Otherwise the error names each inhibitor's holder and its reason.
Result<> judge_inhibitors(const std::vector<Inhibitor>& inhibitors);

// Interprets Manager.SystemState. Returns true if the boot is complete, false if it is still in progress. Returns an
// error for a state from which the boot cannot complete.
Result<bool> judge_system_state(std::string_view state);

// Explains why a call to `service`, which would reboot the machine, was refused. Adds hints about containers, or other
// reboot methods.
Error explain_refusal(std::string_view service, Error refusal);

}  // namespace haulout::agent
