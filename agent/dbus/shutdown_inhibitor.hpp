// logind's delay lock: while it is held, a human's `reboot` waits for us, as long as logind's InhibitDelayMaxSec lets
// it, and not a moment longer. How long that is, is read back from logind: what was configured is often overridden.
//
// run() takes the lock while hold() asks for it, takes it again after the bus or logind was restarted and after a
// shutdown that was called off, and tries again with growing pauses when it is refused. The lock itself needs no run():
// it is a file descriptor that goes when let go, with this object and with the process. One thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

#include "agent/dbus/bus.hpp"
#include "retry/notifier.hpp"

namespace haulout::agent {

class ShutdownInhibitor {
 public:
  // The bus outlives it.
  ShutdownInhibitor(Bus& bus, Rng& rng);
  ShutdownInhibitor(const ShutdownInhibitor&) = delete;
  ShutdownInhibitor& operator=(const ShutdownInhibitor&) = delete;
  ~ShutdownInhibitor() { let_go(); }

  // Until cancelled. Once at a time.
  boost::asio::awaitable<void> run();

  // From now on; `why` is what systemd-inhibit --list shows.
  void hold(std::string why);
  // No longer. The lock goes at once.
  void release();
  // The lock goes at once, so that the shutdown that is being prepared goes on; taken again when that is called off.
  void let_shutdown_proceed();
  bool held() const { return lock_ >= 0; }
  // Why the lock is not held although it should be; empty when all is well.
  const std::string& problem() const { return problem_; }

  // While the machine prepares to go down: when logind will wait no longer. Now or earlier when we hold no lock.
  std::optional<TimePoint> shutdown_at() const;
  // Returns when any of the above has changed; may return without cause. One waiter. Cancellable.
  boost::asio::awaitable<void> changed();

 private:
  void heard(sdbus::Message& signal);
  void prepare(bool preparing);
  void let_go();
  // Asks logind for what it may have told while nobody listened.
  Task<> refresh();
  Task<> take(std::string why);

  Bus& bus_;
  Rng& rng_;
  Notifier work_;     // for run()
  Notifier changed_;  // for the owner
  std::optional<std::string> wanted_;
  std::string problem_;
  int lock_ = -1;
  bool stale_ = true;  // what logind said last, and its lock, may be out of date
  std::optional<TimePoint> preparing_since_;
  Duration delay_{};
  Listening listening_;
};

}  // namespace haulout::agent
