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
  const bool is_status = signal.getMemberName() == "StatusUpdate" &&
                         read_values(signal, last_checked, progress, status.operation, status.new_version, size);
  if (is_status && status == last_) return;
  // A status with another operation or version, the start or end of the service, or a signal that cannot be read: each
  // may mean a change, so pending() is called again.
  changed_.notify();
}

boost::asio::awaitable<Pending> FlatcarBackend::pending(TimePoint deadline) {
  auto answer = co_await bus_call<std::int64_t, double, std::string, std::string, std::int64_t>(
      bus_, {service, path, interface, "GetStatus"}, deadline);
  if (!answer) {
    last_.reset();
    co_return unknown(is_absent(answer.error())
                          ? "update_engine is not on the system bus; is update-engine.service running?"
                          : answer.error().message());
  }
  last_ = UpdateStatus{std::get<2>(*answer), std::get<3>(*answer)};
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

}  // namespace haulout::agent
