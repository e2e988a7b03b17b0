// Whether the API server is up, judged by the requests that the agent sends anyway. It counts as down before the first
// request. It also counts as down if `patience` has passed since the first unanswered request and none was answered
// after that. Pure.
#pragma once

#include <optional>

#include "retry/clock.hpp"

namespace haulout::agent {

class ApiHealth {
 public:
  // Longer than the effect of one broken connection, which is no outage.
  static constexpr Duration patience = std::chrono::seconds(30);

  // `answered`: whether the API server answered a request.
  void see(bool answered, TimePoint now) {
    seen_ = true;
    if (answered) {
      silent_since_.reset();
    } else if (!silent_since_) {
      silent_since_ = now;
    }
  }
  bool up(TimePoint now) const { return seen_ && (!silent_since_ || now - *silent_since_ < patience); }

 private:
  bool seen_ = false;
  std::optional<TimePoint> silent_since_;
};

}  // namespace haulout::agent
