// Holds logind's delay lock. While it is held, a `reboot` by another program waits for the agent, but at most for
// logind's InhibitDelayMaxSec. That limit is read from logind, because the configured value is often overridden.
//
// run() queries logind for its state, and takes the lock while hold() is in force. It takes the lock again after a
// restart of the bus or of logind, and after a shutdown that was cancelled. It retries with backoff if logind refuses.
// The lock is a file descriptor, so it stays held without run(). It is closed on release, with this object, or with the
// process. One thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

#include "agent/dbus/bus.hpp"
#include "agent/ports/shutdown_delay.hpp"
#include "retry/notifier.hpp"

namespace haulout::agent {

class ShutdownInhibitor final : public ShutdownDelay {
 public:
  // Borrows `bus` and `rng`.
  ShutdownInhibitor(Bus& bus, Rng& rng);
  ShutdownInhibitor(const ShutdownInhibitor&) = delete;
  ShutdownInhibitor& operator=(const ShutdownInhibitor&) = delete;
  ~ShutdownInhibitor() override { let_go(); }

  // Runs until it is cancelled. Only one run() at a time.
  boost::asio::awaitable<void> run();

  // Requests the lock. `systemd-inhibit --list` shows `why`.
  void hold(std::string why) override;
  void release() override;
  void let_shutdown_proceed() override;
  bool held() const override { return lock_ >= 0; }
  const std::string& problem() const override { return problem_; }
  bool known() const override { return asked_; }
  std::optional<TimePoint> shutdown_at() const override;
  boost::asio::awaitable<void> changed() override;

 private:
  void heard(sdbus::Message& signal);
  void prepare(bool preparing, TimePoint since);
  void let_go();
  // Queries logind whether a shutdown is being prepared, because signals may have been missed, and how long it would
  // wait.
  Task<> refresh();
  // Queries logind for its state, and takes the lock if it is needed and available.
  Task<> catch_up();
  Task<> take(std::string why);

  Bus& bus_;
  Rng& rng_;
  Notifier work_;     // wakes run()
  Notifier changed_;  // wakes the caller of changed()
  std::optional<std::string> wanted_;
  std::string problem_;
  int lock_ = -1;
  bool stale_ = true;  // the last known state of logind, or of the lock, may be out of date
  bool asked_ = false;
  // A signal that has arrived. It takes effect after logind has reported its current delay.
  struct Heard {
    bool preparing;
    TimePoint at;
  };
  std::optional<Heard> heard_;
  std::optional<TimePoint> preparing_since_;
  Duration delay_{};
  Listening listening_;
};

}  // namespace haulout::agent
