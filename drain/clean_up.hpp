// The programs that clean up the machine of a node before its Node is deleted (`haulout retire --local`): their limit,
// and what became of each. Pure.
#pragma once

#include <chrono>
#include <exception>
#include <string>
#include <string_view>

#include "retry/clock.hpp"

namespace haulout::drain {

struct CleanUpOptions {
  // Limit for each program. `kubeadm reset` ends within seconds; a slow unmount may take minutes.
  Duration limit = std::chrono::minutes(10);
};

enum class CleanUpResult {
  not_run,
  rehearsed,    // its dry run has succeeded, and it has not run for real
  done,         // it has run and succeeded
  failed,       // it has failed, or exceeded its limit
  interrupted,  // it ran, and the command was ended
};

struct CleanUpProgram {
  std::string name;
  CleanUpResult result = CleanUpResult::not_run;
  std::string message;  // why it failed; empty if it did not
};

// Returns the name in JSON: "not-run".
inline std::string_view to_string(CleanUpResult result) {
  switch (result) {
    case CleanUpResult::not_run: return "not-run";
    case CleanUpResult::rehearsed: return "rehearsed";
    case CleanUpResult::done: return "done";
    case CleanUpResult::failed: return "failed";
    case CleanUpResult::interrupted: return "interrupted";
  }
  std::terminate();
}

}  // namespace haulout::drain
