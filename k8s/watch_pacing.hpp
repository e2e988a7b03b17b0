// Decides for a Reflector what to do after a list that failed or a watch that ended, and when. The time and the random
// numbers are arguments. Never waits, sends no requests, never fails.
#pragma once

#include <optional>

#include "retry/backoff.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

// For 20-165 ms after its start, kube-apiserver responds with 403 to every request, with the message of a real denial.
// Two denials at least this far apart are real.
inline constexpr Duration denial_recheck = std::chrono::seconds(1);

class ListPacing {
 public:
  explicit ListPacing(BackoffOptions backoff) : backoff_(backoff) {}

  // Returns the delay before the next attempt, or nullopt if no retry can resolve the error and there is no older view
  // (not synced). With an older view there is always a next attempt.
  std::optional<Duration> after(const Error& error, bool synced, TimePoint now, Rng& rng);

 private:
  bool hopeless(const Error& error, TimePoint now);

  Backoff backoff_;
  std::optional<TimePoint> denied_at_;
  unsigned unreadable_ = 0;
};

struct WatchEnd {
  bool opened = false;         // the response was a stream of watch events
  Duration lived{};            // time from the opening to the end
  std::optional<Error> error;  // unset if the watch ended properly
  bool silent = false;         // the watch ended because nothing was received for too long
};

struct WatchStep {
  // watch: continue from the last resourceVersion. list: list first, because the watch cannot be continued (after
  // silence, 410, an event that cannot be decoded, a permanent error, or an unreachable server), or because several
  // watches in a row did not open. poll: watching is forbidden, so list at intervals.
  enum class Kind { watch, list, poll } kind = Kind::watch;
  Duration delay{};
  bool operator==(const WatchStep&) const = default;
};

class WatchPacing {
 public:
  // If a watch lasted this long and ended properly, the next one starts at once.
  static constexpr Duration long_life = std::chrono::seconds(10);
  // After this number of consecutive watches that did not open, the Reflector lists, because the view has become old.
  static constexpr unsigned attempts_per_list = 3;

  explicit WatchPacing(BackoffOptions backoff) : backoff_(backoff) {}

  // Returns what the Reflector does next, and the delay before that.
  WatchStep after(const WatchEnd& end, TimePoint now, Rng& rng);

 private:
  WatchStep after_denial(TimePoint now, Rng& rng);
  bool place_is_lost(const WatchEnd& end);

  Backoff backoff_;
  std::optional<TimePoint> denied_at_;
  unsigned unopened_ = 0;
};

}  // namespace haulout::k8s
