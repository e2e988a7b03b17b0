// Interface to the executables of the hook points. Fakes live with the tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/hooks/hook_files.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

using HookEnvironment = std::vector<std::pair<std::string, std::string>>;

class HookPrograms {
 public:
  virtual ~HookPrograms() = default;
  // Errors: see hook_files().
  virtual Result<HookFiles> list(HookPoint point) = 0;
  // Runs one hook until it ends, with the point's name as its argument. Errors name the file. Errc::timeout if the hook
  // still runs at the deadline; it is then ended. Errc::unavailable if it cannot be started or fails; the message has
  // the last line that it printed. Cancellable.
  virtual Task<> run(HookPoint point, std::string name, HookEnvironment environment, TimePoint deadline) = 0;
};

}  // namespace haulout::agent
