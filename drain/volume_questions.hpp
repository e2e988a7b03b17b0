// When to ask whose the volumes are that nobody knows yet: each gets its turn, and one whose question fails backs off
// by itself. Pure: the caller asks, one question at a time.
//
// What the server says to all of us (Retry-After), or failure after failure, holds the next question up whichever it
// is.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "retry/backoff.hpp"
#include "retry/rng.hpp"
#include "retry/task.hpp"

namespace haulout::drain {

// Between two questions about volumes that were not answered.
inline constexpr BackoffOptions volumes_patience{std::chrono::seconds(1), 2.0, std::chrono::seconds(30),
                                                 BackoffOptions::Jitter::equal};

class VolumeQuestions {
 public:
  // All PersistentVolumes that are to be asked for now; what is known of others is forgotten.
  void want(const std::vector<std::string>& volumes);
  // Which to ask for: those that were not tried yet first, as they are wanted, then what has been due longest. Nothing
  // while all have to wait.
  std::optional<std::string> due(TimePoint now) const;
  // max(): there is none.
  TimePoint next_due() const;
  void answered(const std::string& volume);
  void failed(const std::string& volume, Error error, bool refused, TimePoint now, Rng& rng);
  // How often in a row the server said that we may not ask for it.
  unsigned refusals(const std::string& volume) const;
  // Of the one that has failed most often; nullptr when none has.
  const Error* trouble() const;
  // There are some, and the last answer for each of them was such a failure.
  template <class Predicate>
  bool all_failed(Predicate such) const {
    return !open_.empty() && std::all_of(open_.begin(), open_.end(), [&](const auto& entry) {
      return entry.second.error && such(*entry.second.error);
    });
  }

 private:
  struct Open {
    TimePoint due = TimePoint::min();
    std::size_t place = 0;
    unsigned refusals = 0;
    std::optional<Error> error{};
    Backoff backoff;
  };
  std::map<std::string, Open> open_;  // by PersistentVolume
  TimePoint not_before_ = TimePoint::min();
  // After any failure; short, so that others have their turn soon.
  Backoff pause_{
      BackoffOptions{std::chrono::milliseconds(100), 2.0, std::chrono::seconds(2), BackoffOptions::Jitter::equal}};
};

}  // namespace haulout::drain
