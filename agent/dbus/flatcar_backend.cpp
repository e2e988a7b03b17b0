#include "agent/dbus/flatcar_backend.hpp"

#include <fmt/format.h>

#include "agent/dbus/bus.hpp"
#include "agent/dbus/bus_call.hpp"
#include "agent/ports/backend.hpp"

namespace haulout::agent {
namespace {

// From github.com/flatcar/update_engine: update_engine.xml, and the names in update_attempter.cc.
const std::string service = "com.coreos.update1";
const std::string path = "/com/coreos/update1";
const std::string interface = "com.coreos.update1.Manager";

constexpr std::string_view prefix = "UPDATE_STATUS_";
constexpr std::string_view steps[] = {"IDLE",        "CHECKING_FOR_UPDATE", "UPDATE_AVAILABLE",
                                      "DOWNLOADING", "VERIFYING",           "FINALIZING"};

Pending unknown(std::string problem) {
  Pending out;
  out.problem = std::move(problem);
  return out;
}

}  // namespace

Pending judge_update_status(const UpdateStatus& status) {
  std::string_view operation = status.operation;
  if (!operation.starts_with(prefix))
    return unknown(fmt::format("update_engine reports an unknown state: \"{}\"", operation));
  operation.remove_prefix(prefix.size());
  Pending out;
  if (operation == "UPDATED_NEED_REBOOT") {
    out.need = Need::yes;
    // After its own restart, update_engine reports no version: it has only a marker file that says that it has updated.
    const bool known = !status.new_version.empty() && status.new_version != "0.0.0";
    if (known) out.target = status.new_version;
    out.reasons.push_back(known ? "Flatcar " + status.new_version : "Flatcar update");
    return out;
  }
  if (std::find(std::begin(steps), std::end(steps), operation) != std::end(steps)) {
    out.need = Need::no;
    return out;
  }
  if (operation == "REPORTING_ERROR_EVENT")
    return unknown("update_engine's last update failed; see journalctl -u update-engine on the machine");
  return unknown(fmt::format("update_engine reports an unknown state: \"{}\"", status.operation));
}

FlatcarBackend::FlatcarBackend(Bus& bus, Rng& rng, HostRoot root)
    : bus_(bus),
      rng_(rng),
      root_(std::move(root)),
      changed_(bus.executor()),
      listening_(bus, {{fmt::format("type='signal',sender='{}',path='{}',interface='{}',member='StatusUpdate'", service,
                                    path, interface),
                        owner_changes(service)},
                       [this](sdbus::Message& signal) { heard(signal); },
                       [this] { changed_.notify(); }}) {}

void FlatcarBackend::heard(sdbus::Message& signal) {
  std::int64_t last_checked = 0, size = 0;
  double progress = 0;
  UpdateStatus status;
  const bool is_status = sdbus_versions::is_signal(signal, "StatusUpdate") &&
                         read_values(signal, last_checked, progress, status.operation, status.new_version, size);
  if (is_status && status == last_) return;
  // A status with another operation or version, the start or end of the service, or a signal that cannot be read: each
  // may mean a change, so pending() is called again.
  changed_.notify();
}

namespace {

Task<UpdateStatus> get_status(Bus& bus, TimePoint deadline) {
  auto answer = co_await bus_call<std::int64_t, double, std::string, std::string, std::int64_t>(
      bus, {service, path, interface, "GetStatus"}, deadline);
  if (!answer && is_absent(answer.error()))
    co_return Error(Errc::unavailable, "update_engine is not on the system bus; is update-engine.service running?");
  if (!answer) co_return std::move(answer).error();
  co_return UpdateStatus{std::get<2>(*answer), std::get<3>(*answer)};
}

}  // namespace

boost::asio::awaitable<Pending> FlatcarBackend::pending(TimePoint deadline) {
  auto status = co_await get_status(bus_, deadline);
  last_.reset();
  if (!status) co_return unknown(status.error().message());
  last_ = *std::move(status);
  co_return judge_update_status(*last_);
}

Task<std::string> FlatcarBackend::booted(TimePoint) {
  auto release = read_os_release(root_);
  if (!release) co_return std::move(release).error();
  if (*release && !(*release)->version.empty()) co_return std::move((*release)->version);
  co_return Error(Errc::unavailable,
                  fmt::format("{} has no VERSION; is --host-root the directory of the host's file system?",
                              root_.display("/etc/os-release")));
}

Task<> FlatcarBackend::apply(std::string, TimePoint) {
  co_return Result<>();
}

boost::asio::awaitable<void> FlatcarBackend::changed() {
  co_await changed_.wait_until(bus_.clock(), next_recheck(bus_.clock(), rng_));
}

namespace {

// Interval between two requests to look for an update; update_engine itself looks as often.
constexpr Duration attempt_interval = std::chrono::hours(1);
// After a request, update_engine is idle for a moment before it begins. If it is idle after this time, it has found
// nothing, or has failed without reporting that.
constexpr Duration begins_within = std::chrono::seconds(20);

const std::string idle = std::string(prefix) + "IDLE";

}  // namespace

Task<> FlatcarUpdater::attempt(TimePoint deadline) {
  CO_TRY(const UpdateStatus now, co_await get_status(bus_, deadline));
  // In any other operation, update_engine looks for an update, installs one, has installed one, or reports an error.
  if (now.operation != idle) co_return Result<>();
  auto asked = co_await bus_call<>(bus_, {service, path, interface, "AttemptUpdate"}, deadline);
  if (!asked) co_return std::move(asked).error();
  co_return Result<>();
}

boost::asio::awaitable<Updates> FlatcarUpdater::look(TimePoint deadline) {
  const auto now = co_await get_status(bus_, deadline);
  if (!now) co_return Updates{.problem = now.error().message()};
  Pending judged = judge_update_status(*now);
  if (judged.need == Need::unknown) co_return Updates{.problem = std::move(judged.problem)};
  co_return Updates{.need = Need::no};
}

boost::asio::awaitable<void> FlatcarUpdater::changed() {
  co_await bus_.clock().sleep_until(next_recheck(bus_.clock(), rng_, attempt_interval));
  // If this fails, look() says why.
  static_cast<void>(co_await attempt(bus_.clock().now() + begins_within));
}

Task<> FlatcarUpdater::download(TimePoint) {
  co_return Result<>();
}

Task<std::string> FlatcarUpdater::blocked_by(TimePoint) {
  co_return std::string();
}

Task<> FlatcarUpdater::install(TimePoint deadline) {
  CO_CHECK(co_await attempt(deadline));
  const TimePoint begun = bus_.clock().now() + begins_within;
  bool seen = false;  // update_engine was not idle since the request, so it has begun to look
  for (;;) {
    CO_TRY(const UpdateStatus now, co_await get_status(bus_, deadline));
    const Pending judged = judge_update_status(now);
    if (judged.need == Need::yes) co_return Result<>();
    if (judged.need == Need::unknown) co_return Error(Errc::unavailable, judged.problem);
    if (now.operation != idle) seen = true;
    if (now.operation == idle && (seen || bus_.clock().now() >= begun)) co_return Result<>();
    if (bus_.clock().now() >= deadline)
      co_return Error(Errc::timeout, "update_engine did not finish in time; it is at " + now.operation);
    co_await bus_.clock().sleep_until(std::min(deadline, bus_.clock().now() + progress_));
  }
}

}  // namespace haulout::agent
