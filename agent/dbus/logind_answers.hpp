// What logind and systemd answer, judged. Pure. The facts: org.freedesktop.login1(5), org.freedesktop.systemd1(5).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "retry/task.hpp"

namespace haulout::agent {

// One row of ListInhibitors.
struct Inhibitor {
  std::string what;  // "shutdown:sleep"
  std::string who;
  std::string why;
  std::string mode;  // block, block-weak, delay
  std::uint32_t uid = 0;
  std::uint32_t pid = 0;
};

// Success only for "yes", and for an answer that speaks of inhibitors alone, which judge_inhibitors() looks at.
// `uid` is the user that the bus takes us for.
Result<> judge_can_reboot(std::string_view answer, std::uint32_t uid);

// Whether a colon-separated list as in BlockInhibited holds "shutdown".
bool names_shutdown(std::string_view what);

// Success when none of them blocks a shutdown; else who does and why.
Result<> judge_inhibitors(const std::vector<Inhibitor>& inhibitors);

// Manager.SystemState: whether the boot has come to its end. An error for a state that does not lead there.
Result<bool> judge_system_state(std::string_view state);

// A call to the reboot service `service` was refused: with the traps of containers, or what to use instead.
Error explain_refusal(std::string_view service, Error refusal);

}  // namespace haulout::agent
