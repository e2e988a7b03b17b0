// When to come back after a list that failed or a watch that ended, and with what. Decides only: takes the time and the
// jitter as arguments, never waits, never asks the server.
#pragma once

#include <optional>

#include "retry/backoff.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

// For 20-165 ms after its start kube-apiserver answers 403 to everybody, in the words of a real denial. Two that are
// this far apart are real.
inline constexpr Duration denial_recheck = std::chrono::seconds(1);

class ListPacing {
 public:
  explicit ListPacing(BackoffOptions backoff) : backoff_(backoff) {}

  // How long to wait before the next try. Nothing: no retry can heal this, and there is no older view to keep (not
  // synced). With an older view there is always a next try.
  std::optional<Duration> after(const Error& error, bool synced, TimePoint now, Rng& rng);

 private:
  bool hopeless(const Error& error, TimePoint now);

  Backoff backoff_;
  std::optional<TimePoint> denied_at_;
  unsigned unreadable_ = 0;
};

struct WatchEnd {
  bool opened = false;         // the answer was a stream of events
  Duration lived{};            // from then to the end
  std::optional<Error> error;  // unset: a proper end
  bool silent = false;         // nothing came for too long
};

struct WatchStep {
  enum class Kind { watch, list, poll } kind = Kind::watch;  // watch: from the last resourceVersion
  Duration delay{};
  bool operator==(const WatchStep&) const = default;
};

class WatchPacing {
 public:
  // A watch that lived this long was a good one: the next may follow at once when it ended properly.
  static constexpr Duration long_life = std::chrono::seconds(10);
  // So many attempts in a row that never opened: look with a list in between, the view grows old.
  static constexpr unsigned attempts_per_list = 3;

  explicit WatchPacing(BackoffOptions backoff) : backoff_(backoff) {}

  WatchStep after(const WatchEnd& end, TimePoint now, Rng& rng);

 private:
  WatchStep after_denial(TimePoint now, Rng& rng);
  bool place_is_lost(const WatchEnd& end);

  Backoff backoff_;
  std::optional<TimePoint> denied_at_;
  unsigned unopened_ = 0;
};

}  // namespace haulout::k8s
