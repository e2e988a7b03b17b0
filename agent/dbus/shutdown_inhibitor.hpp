// logind's delay lock: while it is held, a human's `reboot` waits for us, as long as logind's InhibitDelayMaxSec lets
// it, and not a moment longer. How long that is, is read back from logind: what was configured is often overridden.
//
// run() asks logind what it is at, takes the lock while hold() asks for it, takes it again after the bus or logind was
// restarted and after a shutdown that was called off, and tries again with growing pauses when it is refused. The lock
// itself needs no run(): it is a file descriptor that goes when let go, with this object and with the process. One
// thread.
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
  // The bus outlives it.
  ShutdownInhibitor(Bus& bus, Rng& rng);
  ShutdownInhibitor(const ShutdownInhibitor&) = delete;
  ShutdownInhibitor& operator=(const ShutdownInhibitor&) = delete;
  ~ShutdownInhibitor() override { let_go(); }

  // Until cancelled. Once at a time.
  boost::asio::awaitable<void> run();

  // `why` is what systemd-inhibit --list shows.
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
  // Asks logind for what it may have told while nobody listened, and for how long it would wait.
  Task<> refresh();
  // Asks logind, and takes the lock where one is wanted and to be had.
  Task<> catch_up();
  Task<> take(std::string why);

  Bus& bus_;
  Rng& rng_;
  Notifier work_;     // for run()
  Notifier changed_;  // for the owner
  std::optional<std::string> wanted_;
  std::string problem_;
  int lock_ = -1;
  bool stale_ = true;  // what logind said last, and its lock, may be out of date
  bool asked_ = false;
  // Told by a signal, and not told on before logind has said how long it waits now.
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
