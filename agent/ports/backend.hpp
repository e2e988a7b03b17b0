// Port: finds out whether the operating system needs a reboot. One implementation per update tool; tests and the demo
// have fakes. If a back end cannot find out, it returns `unknown`, never `no` or `yes`. `unknown` never causes a
// reboot. AgentWhole owns the back end, and the agent borrows it. Which Errc the errors have depends on the tool; every
// error names subject, cause and remedy.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "retry/clock.hpp"
#include "retry/rng.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// Whether the operating system needs something: a reboot, or updates.
enum class Need { unknown, no, yes };

// What the operating system needs, as a back end reports it.
struct Pending {
  Need need = Need::unknown;
  std::vector<std::string> reasons{};  // for messages: packages, a kernel, a version
  std::string target{};                // the version that the reboot leads to; empty if the tool has no versions
  std::string problem{};               // why `need` is unknown: subject, cause, remedy
  bool operator==(const Pending&) const = default;
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Returns the value of --backend that selects this back end.
  virtual std::string name() const = 0;
  // Returns true if a version means the same on other nodes. The number of a snapshot does not.
  virtual bool versions_are_shared() const { return true; }
  // Queries the operating system. Never fails: an error becomes `unknown`, with the error as `problem`. Cancellable.
  virtual boost::asio::awaitable<Pending> pending(TimePoint deadline) = 0;
  // Returns the running version, or an empty string if the tool has no versions. Cancellable.
  virtual Task<std::string> booted(TimePoint deadline) = 0;
  // Installs version `target` so that the next boot uses it. Returns at once if it is installed already. Idempotent.
  // Cancellable; after a cancellation the agent calls it again.
  virtual Task<> apply(std::string target, TimePoint deadline) = 0;
  // Returns when pending() may have a different answer; may also return without cause. Cancellable.
  virtual boost::asio::awaitable<void> changed() = 0;
};

// next_recheck() returns the time at which a back end that gets no notifications of changes queries again: by default
// in about ten minutes. The interval varies by up to a fifth, so that the nodes of a fleet do not query at the same
// time. Pure apart from `clock` and `rng`.
inline constexpr Duration recheck_interval = std::chrono::minutes(10);

inline TimePoint next_recheck(const Clock& clock, Rng& rng, Duration interval = recheck_interval) {
  return clock.now() + rng.between(interval * 4 / 5, interval * 6 / 5);
}

}  // namespace haulout::agent
