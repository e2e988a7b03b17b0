// The time limit of one attempt to start the agent. Pure.
#pragma once

#include <algorithm>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// Doubles the limit after each attempt that timed out. Otherwise the agents of a fleet that start together might repeat
// the same requests to a slow API server without ever completing them. Other failures do not change the limit.
class StartPatience {
 public:
  static constexpr Duration first = std::chrono::seconds(30);
  static constexpr Duration longest = std::chrono::minutes(8);

  Duration limit() const { return limit_; }
  void failed(const Error& error) {
    if (error.code() == Errc::timeout) limit_ = std::min(2 * limit_, longest);
  }

 private:
  Duration limit_ = first;
};

}  // namespace haulout::agent
