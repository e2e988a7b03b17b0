// Whether the API server answers, judged by the requests that are sent anyway: it does until no request has been
// answered for a while, and requests were sent. Pure.
#pragma once

#include <optional>

#include "retry/clock.hpp"

namespace haulout::agent {

class ApiHealth {
 public:
  // A single connection that breaks is no outage.
  static constexpr Duration patience = std::chrono::seconds(30);

  // A request was answered by the API server, or was not.
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
