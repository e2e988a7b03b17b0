#include "agent/dbus/logind.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "agent/dbus/bus_call.hpp"
#include "base/plain_text.hpp"
#include "base/text.hpp"
#include "retry/backoff.hpp"

namespace haulout::agent {
namespace {

constexpr std::string_view other_methods = "choose another --reboot-method (systemd, command or none)";

Error cannot_reboot(const std::string& why) {
  return Error(Errc::unavailable, "logind would not reboot this machine: " + why);
}

}  // namespace

Result<> judge_can_reboot(std::string_view answer, std::uint32_t uid) {
  if (answer == "yes" || answer.ends_with("inhibitor-blocked")) return {};
  const std::string rights = fmt::format(
      "logind sees the agent as uid {}; run the agent as uid 0 of the host, or allow that uid "
      "org.freedesktop.login1.reboot and org.freedesktop.login1.reboot-multiple-sessions with a polkit rule",
      uid);
  if (answer == "challenge") return cannot_reboot("it requires a password (CanReboot: challenge); " + rights);
  if (answer == "no") return cannot_reboot("it is not permitted (CanReboot: no); " + rights);
  if (answer == "na")
    return cannot_reboot(fmt::format("it does not support reboots (CanReboot: na); {}", other_methods));
  return cannot_reboot(fmt::format("CanReboot answered \"{}\"; {}", answer, other_methods));
}

bool names_shutdown(std::string_view what) {
  while (!what.empty()) {
    const std::size_t end = std::min(what.find(':'), what.size());
    if (what.substr(0, end) == "shutdown") return true;
    what.remove_prefix(std::min(end + 1, what.size()));
  }
  return false;
}

Result<> judge_inhibitors(const std::vector<Inhibitor>& inhibitors) {
  std::string blockers;
  for (const Inhibitor& inhibitor : inhibitors) {
    if (!inhibitor.mode.starts_with("block") || !names_shutdown(inhibitor.what)) continue;
    blockers += fmt::format("{}{} (pid {}, uid {}): {}", blockers.empty() ? "" : "; ", inhibitor.who, inhibitor.pid,
                            inhibitor.uid, inhibitor.why);
  }
  if (blockers.empty()) return {};
  return Error(Errc::unavailable, fmt::format("a reboot is blocked by {}; wait until that lock is released, or end the "
                                              "program that holds it (systemd-inhibit --list)",
                                              blockers));
}

Result<bool> judge_system_state(std::string_view state) {
  if (state == "running" || state == "degraded") return true;
  if (state == "initializing" || state == "starting") return false;
  return Error(
      Errc::unavailable,
      fmt::format(
          "systemd reports the state \"{}\", but running or degraded is expected; see systemctl status on the machine",
          state));
}

KexecPlan plan_kexec(const Result<std::optional<std::string>>& loaded, std::string_view file) {
  const auto instead = [](std::string why) { return KexecPlan{false, "logind instead of kexec, because " + why}; };
  if (!loaded) return instead(loaded.error().message());
  if (!*loaded)
    return instead(fmt::format(
        "{} does not exist: this kernel has no kexec, or the agent's container does not mount the file", file));
  const std::string value = first_line(**loaded);
  if (value == "1") return {true, "kexec into the loaded kernel"};
  return instead(fmt::format("no kernel is loaded: {} contains \"{}\"", file, printable(value)));
}

Error explain_refusal(std::string_view service, Error refusal) {
  if (is_bus_error(refusal, bus_error::access_denied) || is_bus_error(refusal, bus_error::interactive_authorization))
    return Error(Errc::unavailable, fmt::format("{}; {}", refusal.message(), container_traps()));
  if (is_absent(refusal))
    return Error(
        Errc::unavailable,
        fmt::format(
            "{0}; {1} is not on the system bus: start it, or, if a --reboot-method needs it, use another method",
            refusal.message(), service));
  return refusal;
}

using boost::asio::awaitable;
namespace {

constexpr std::string_view by_logind = "logind";
constexpr std::string_view by_systemd = "systemd";
constexpr std::string_view by_kexec = "kexec";
// SD_LOGIND_ROOT_CHECK_INHIBITORS. Without it, logind before systemd 257 ignores block inhibitors if root reboots.
constexpr std::uint64_t also_for_root = 1;
// SD_LOGIND_REBOOT_VIA_KEXEC, since systemd 249; in org.freedesktop.login1(5) SD_LOGIND_KEXEC_REBOOT.
constexpr std::uint64_t through_kexec = 2;
constexpr std::string_view kexec_loaded = "/sys/kernel/kexec_loaded";

Error no_such_method(std::string_view method) {
  return Error(Errc::invalid,
               fmt::format("\"{}\" is not a reboot method over D-Bus; choose logind, kexec or systemd", method));
}

// Returns the uid of this process on the bus. In a user namespace it may differ from geteuid().
awaitable<std::uint32_t> uid_on_the_bus(Bus& bus, TimePoint deadline) {
  auto uid = co_await bus_call<std::uint32_t>(bus, bus_driver("GetConnectionUnixUser"), deadline, bus.unique_name());
  co_return uid ? std::get<0>(*uid) : static_cast<std::uint32_t>(::geteuid());
}

}  // namespace

// Returns a monotonic time, so that setting a clock does not change it. systemd keeps it over a re-execution
// (daemon-reexec).
Task<MachineStart> LogindHost::started(TimePoint deadline) {
  CO_TRY(const auto at, co_await bus_property<std::uint64_t>(bus_, systemd1("UserspaceTimestampMonotonic"), deadline));
  co_return MachineStart{std::string(by_systemd), at};
}

std::vector<std::string> LogindHost::reboot_methods() const {
  std::vector<std::string> names = methods_;
  for (std::string& name : names)
    if (name == by_kexec) name = kexec_plan().words;
  return names;
}

KexecPlan LogindHost::kexec_plan() const {
  KexecPlan plan = plan_kexec(root().read(kexec_loaded, 16), root().display(kexec_loaded));
  if (plan.kexec && logind_lacks_kexec_) plan.words = "logind instead of kexec, because this logind is too old for it";
  return plan;
}

Task<> LogindHost::can_reboot(TimePoint deadline) {
  if (methods_.empty()) co_return Error(Errc::invalid, "no reboot method is configured");
  if (methods_.front() == by_logind || methods_.front() == by_kexec) co_return co_await logind_permits(deadline);
  if (methods_.front() == by_systemd) co_return co_await systemd_permits(deadline);
  co_return no_such_method(methods_.front());
}

Task<> LogindHost::logind_permits(TimePoint deadline) {
  auto answer = co_await bus_call<std::string>(bus_, login1("CanReboot"), deadline);
  if (!answer) co_return explain_refusal("logind", std::move(answer).error());
  const std::uint32_t uid = co_await uid_on_the_bus(bus_, deadline);
  CO_CHECK(judge_can_reboot(std::get<0>(*answer), uid));
  CO_TRY(const auto inhibitors, co_await this->inhibitors(deadline));
  co_return judge_inhibitors(inhibitors);
}

Task<std::string> LogindHost::blocked_by(TimePoint deadline) {
  auto by_dpkg = co_await FileHost::blocked_by(deadline);
  if (by_dpkg && !by_dpkg->empty()) co_return by_dpkg;
  // If systemd is the only method, inhibitors do not block the reboot.
  if (std::all_of(methods_.begin(), methods_.end(), [](const auto& method) { return method == by_systemd; }))
    co_return by_dpkg;
  CO_TRY(const auto inhibitors, co_await this->inhibitors(deadline));
  const auto judged = judge_inhibitors(inhibitors);
  co_return judged ? std::string() : judged.error().message();
}

// Does not read the property `BlockInhibited`, because it does not include weak locks, for which logind blocks reboots
// by root as well (systemd 257).
Task<std::vector<Inhibitor>> LogindHost::inhibitors(TimePoint deadline) {
  using Row = sdbus::Struct<std::string, std::string, std::string, std::string, std::uint32_t, std::uint32_t>;
  auto rows = co_await bus_call<std::vector<Row>>(bus_, login1("ListInhibitors"), deadline);
  if (!rows) co_return std::move(rows).error();
  std::vector<Inhibitor> inhibitors;
  for (const Row& row : std::get<0>(*rows))
    inhibitors.push_back(
        {std::get<0>(row), std::get<1>(row), std::get<2>(row), std::get<3>(row), std::get<4>(row), std::get<5>(row)});
  co_return inhibitors;
}

Task<> LogindHost::systemd_permits(TimePoint deadline) {
  // No method of systemd says whether it would permit a reboot. It lets the host's root reboot, and asks all other
  // users for a password.
  auto state = co_await bus_property<std::string>(bus_, systemd1("SystemState"), deadline);
  if (!state) co_return explain_refusal("systemd", std::move(state).error());
  const std::uint32_t uid = co_await uid_on_the_bus(bus_, deadline);
  if (uid == 0) co_return Result<>();
  co_return Error(
      Errc::unavailable,
      fmt::format("systemd allows reboots only to root, and sees this process as uid {}: run it as uid 0 of the host "
                  "(in a pod: not with hostUsers: false)",
                  uid));
}

Task<> LogindHost::reboot(std::size_t method, TimePoint deadline) {
  if (method >= methods_.size())
    co_return Error(Errc::invalid,
                    fmt::format("bug in Haulout: reboot method number {} was requested, but there are {}", method + 1,
                                methods_.size()));
  if (methods_[method] == by_logind) co_return co_await reboot_by_logind(false, deadline);
  if (methods_[method] == by_kexec) co_return co_await reboot_by_logind(kexec_plan().kexec, deadline);
  if (methods_[method] != by_systemd) co_return no_such_method(methods_[method]);
  auto accepted = co_await bus_call<>(bus_, systemd1("Reboot"), deadline);
  if (!accepted) co_return explain_refusal("systemd", std::move(accepted).error());
  co_return Result<>();
}

Task<> LogindHost::reboot_by_logind(bool kexec, TimePoint deadline) {
  logind_lacks_kexec_ = false;
  const std::uint64_t flags = also_for_root | (kexec ? through_kexec : 0);
  auto accepted = co_await bus_call<>(bus_, login1("RebootWithFlags"), deadline, flags);
  // A logind that does not know a flag refuses the whole request.
  if (kexec && !accepted && is_bus_error(accepted.error(), bus_error::invalid_args)) {
    logind_lacks_kexec_ = true;
    accepted = co_await bus_call<>(bus_, login1("RebootWithFlags"), deadline, also_for_root);
  }
  // systemd before 248 has only `Reboot`. Its argument decides whether logind may ask a person for a password.
  if (!accepted && is_bus_error(accepted.error(), bus_error::unknown_method)) {
    logind_lacks_kexec_ = kexec;
    accepted = co_await bus_call<>(bus_, login1("Reboot"), deadline, false);
  }
  if (!accepted) co_return explain_refusal("logind", std::move(accepted).error());
  co_return Result<>();
}

Task<bool> LogindHost::boot_complete(TimePoint deadline) {
  const BusMethod manager = systemd1("SystemState");
  auto there = co_await bus_call<bool>(bus_, bus_driver("NameHasOwner"), deadline, manager.service);
  if (!there) co_return std::move(there).error();
  // Early in a boot, systemd may be running without being on the bus yet: then the boot is not complete.
  if (!std::get<0>(*there)) {
    CO_TRY(const bool booted, systemd_booted(root()));
    co_return !booted;
  }
  auto state = co_await bus_property<std::string>(bus_, manager, deadline);
  if (!state) co_return explain_refusal("systemd", std::move(state).error());
  co_return judge_system_state(*state);
}

namespace {

// Time limit of a request to logind.
constexpr std::chrono::seconds answer_limit{10};
// Time limit of a request while a shutdown waits. logind delays a shutdown for 5 s by default.
constexpr std::chrono::seconds hurried_limit{1};
// Backoff after logind has refused or has not answered.
constexpr BackoffOptions retries{std::chrono::milliseconds(500), 2.0, std::chrono::minutes(1),
                                 BackoffOptions::Jitter::equal};

// A value that does not fit a Duration becomes Duration::max(). InhibitDelayMaxSec always fits, but the bus may deliver
// any value.
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
  if (sdbus_versions::is_signal(signal, "PrepareForShutdown") && read_values(signal, preparing))
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
  // If a signal about the shutdown arrived during the calls, its time is the most accurate beginning of the shutdown.
  const TimePoint since = heard_ ? heard_->at : heard ? heard->at : bus_.clock().now();
  if (preparing || heard) prepare(preparing ? *preparing : heard->preparing, since);
  CO_CHECK(std::move(delay));
  CO_CHECK(std::move(preparing));
  co_return Result<>();
}

Task<> ShutdownInhibitor::catch_up() {
  stale_ = false;  // before the calls, so that a change during them sets it again
  CO_CHECK(co_await refresh());
  // While logind prepares a shutdown it refuses new locks. A lock that is already held still delays the shutdown.
  if (preparing_since_ || !wanted_) co_return Result<>();
  co_return co_await take(*wanted_);
}

Task<> ShutdownInhibitor::take(std::string why) {
  const TimePoint deadline = saturating_add(bus_.clock().now(), answer_limit);
  auto taken = co_await bus_call<sdbus::UnixFd>(bus_, login1("Inhibit"), deadline, "shutdown", "haulout", why, "delay");
  if (!taken) co_return explain_refusal("logind", std::move(taken).error());
  if (!wanted_) co_return Result<>();  // release() was called during the call
  // sdbus-c++ duplicates the descriptor without FD_CLOEXEC. Child processes would inherit it and hold the lock until
  // they end. So keep another duplicate, with that flag.
  const int lock = ::fcntl(std::get<0>(*taken).get(), F_DUPFD_CLOEXEC, 0);
  if (lock < 0)
    co_return Error(Errc::unavailable,
                    "the lock that delays a shutdown cannot be kept: " + std::generic_category().message(errno));
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
