// How long an attempt to come up may take. Pure.
#pragma once

#include <algorithm>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// One that ran out of time gets twice as long the next time: a fleet that starts together would otherwise ask a slow
// API server the same again for ever, and no agent would come to an end. Any other failure says nothing about time.
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
