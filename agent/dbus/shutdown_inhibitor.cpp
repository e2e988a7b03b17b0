#include "agent/dbus/shutdown_inhibitor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "agent/dbus/bus_call.hpp"
#include "agent/dbus/logind_host.hpp"
#include "retry/backoff.hpp"

namespace haulout::agent {
namespace {

// Time limit of a request to logind.
constexpr std::chrono::seconds answer_limit{10};
// Time limit of a request while a shutdown waits. logind delays a shutdown for 5 s by default.
constexpr std::chrono::seconds hurried_limit{1};
// Backoff after logind has refused or has not answered.
constexpr BackoffOptions retries{std::chrono::milliseconds(500), 2.0, std::chrono::minutes(1),
                                 BackoffOptions::Jitter::equal};

// InhibitDelayMaxSec always fits a Duration, but a value on the wire may not.
Duration from_microseconds(std::uint64_t value) {
  constexpr auto longest = std::chrono::duration_cast<std::chrono::microseconds>(Duration::max()).count();
  if (value >= static_cast<std::uint64_t>(longest)) return Duration::max();
  return std::chrono::microseconds(value);
}

}  // namespace

ShutdownInhibitor::ShutdownInhibitor(Bus& bus, Rng& rng)
    : bus_(bus),
      rng_(rng),
      work_(bus.executor()),
      changed_(bus.executor()),
      listening_(bus, {{"type='signal',sender='org.freedesktop.login1',path='/org/freedesktop/login1',"
                        "interface='org.freedesktop.login1.Manager',member='PrepareForShutdown'",
                        owner_changes(login1("").service)},
                       [this](sdbus::Message& signal) { heard(signal); },
                       [this] {
                         stale_ = true;
                         work_.notify();
                       }}) {}

void ShutdownInhibitor::heard(sdbus::Message& signal) {
  bool preparing = false;
  if (signal.getMemberName() == "PrepareForShutdown" && read_values(signal, preparing))
    heard_ = Heard{preparing, bus_.clock().now()};
  stale_ = true;
  work_.notify();
}

void ShutdownInhibitor::prepare(bool preparing, TimePoint since) {
  if (preparing == preparing_since_.has_value()) return;
  preparing_since_ = preparing ? std::optional(since) : std::nullopt;
  changed_.notify();
}

std::optional<TimePoint> ShutdownInhibitor::shutdown_at() const {
  if (!preparing_since_) return std::nullopt;
  return held() ? saturating_add(*preparing_since_, delay_) : *preparing_since_;
}

void ShutdownInhibitor::let_go() {
  if (held()) ::close(lock_);
  lock_ = -1;
}

void ShutdownInhibitor::hold(std::string why) {
  wanted_ = std::move(why);
  work_.notify();
}

void ShutdownInhibitor::release() {
  wanted_.reset();
  problem_.clear();
  let_go();
  changed_.notify();
}

void ShutdownInhibitor::let_shutdown_proceed() {
  let_go();
  changed_.notify();
}

Task<> ShutdownInhibitor::refresh() {
  const auto heard = std::exchange(heard_, std::nullopt);
  const TimePoint deadline = saturating_add(bus_.clock().now(), heard ? hurried_limit : answer_limit);
  auto delay = co_await bus_property<std::uint64_t>(bus_, login1("InhibitDelayMaxUSec"), deadline);
  if (delay) delay_ = from_microseconds(*delay);
  auto preparing = co_await bus_property<bool>(bus_, login1("PreparingForShutdown"), deadline);
  // If a signal arrived during the calls, use its time, because it is the most accurate.
  const TimePoint since = heard_ ? heard_->at : heard ? heard->at : bus_.clock().now();
  if (preparing || heard) prepare(preparing ? *preparing : heard->preparing, since);
  CO_CHECK(std::move(delay));
  CO_CHECK(std::move(preparing));
  co_return Result<>();
}

Task<> ShutdownInhibitor::catch_up() {
  stale_ = false;  // set before asking, so that a change during the calls sets it again
  CO_CHECK(co_await refresh());
  // While logind prepares a shutdown it refuses new locks. A lock that is already held still delays the shutdown.
  if (preparing_since_ || !wanted_) co_return Result<>();
  co_return co_await take(*wanted_);
}

Task<> ShutdownInhibitor::take(std::string why) {
  const TimePoint deadline = saturating_add(bus_.clock().now(), answer_limit);
  auto taken = co_await bus_call<sdbus::UnixFd>(bus_, login1("Inhibit"), deadline, "shutdown", "haulout", why, "delay");
  if (!taken) co_return explain_refusal("logind", std::move(taken).error());
  if (!wanted_) co_return Result<>();  // released during the call
  // sdbus-c++ duplicates the descriptor without FD_CLOEXEC. Child processes would inherit it and hold the lock until
  // they end.
  const int lock = ::fcntl(std::get<0>(*taken).get(), F_DUPFD_CLOEXEC, 0);
  if (lock < 0) co_return Error(Errc::unavailable, "keep the lock: " + std::generic_category().message(errno));
  let_go();
  lock_ = lock;
  co_return Result<>();
}

boost::asio::awaitable<void> ShutdownInhibitor::run() {
  Clock& clock = bus_.clock();
  Backoff backoff(retries);
  while (true) {
    TimePoint again = TimePoint::max();
    const bool missing = wanted_ && !preparing_since_ && !held();
    if (missing || stale_) {
      auto done = co_await catch_up();
      asked_ = true;
      if (done) {
        backoff.reset();
        problem_.clear();
      } else {
        if (wanted_) problem_ = done.error().message();
        stale_ = true;
        again = saturating_add(clock.now(), backoff.next(rng_));
      }
      changed_.notify();
    }
    co_await work_.wait_until(clock, again);
  }
}

boost::asio::awaitable<void> ShutdownInhibitor::changed() {
  co_await changed_.wait_until(bus_.clock(), TimePoint::max());
}

}  // namespace haulout::agent
