// Port: the executables of the hook points. Fakes live with the tests.
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
  // Runs one of them to its end, with the point's name as its argument. Errors name the file: Errc::timeout at the
  // deadline, by which it is ended; Errc::unavailable when it failed, with the last that it said, or cannot be started.
  // Cancellable.
  virtual Task<> run(HookPoint point, std::string name, HookEnvironment environment, TimePoint deadline) = 0;
};

}  // namespace haulout::agent
