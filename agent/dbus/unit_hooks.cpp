#include "agent/dbus/unit_hooks.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "agent/dbus/bus_call.hpp"
#include "agent/dbus/logind.hpp"
#include "base/descriptor.hpp"
#include "base/plain_text.hpp"
#include "retry/notifier.hpp"

namespace haulout::agent {

namespace {

constexpr const char* unit_exists = "org.freedesktop.systemd1.UnitExists";
constexpr const char* no_such_unit = "org.freedesktop.systemd1.NoSuchUnit";
constexpr const char* already_subscribed = "org.freedesktop.systemd1.AlreadySubscribed";

// Time from SIGTERM to SIGKILL after the deadline has passed.
constexpr std::chrono::seconds stop_limit{10};
// A signal reports the end of the unit. If the signal is lost, the end is detected after at most this time.
constexpr std::chrono::seconds look_again{10};
// Bytes at the end of a hook's stderr that are kept for the error message.
constexpr std::size_t kept_errors = 2048;

// Types of org.freedesktop.systemd1(5): a(sv), a(sasb), (uo)
using Property = sdbus::Struct<std::string, sdbus::Variant>;
using Exec = sdbus::Struct<std::string, std::vector<std::string>, bool>;
using Job = sdbus::Struct<std::uint32_t, sdbus::ObjectPath>;
using Auxiliary = sdbus::Struct<std::string, std::vector<Property>>;

template <class T>
Property property(const char* name, T value) {
  return Property{std::string(name), sdbus::Variant(std::move(value))};
}

std::uint64_t microseconds(Duration duration) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(duration).count());
}

std::vector<Property> properties_of(const UnitCommand& command, Duration limit, const Descriptor& errors,
                                    const Descriptor& output) {
  std::vector<std::string> argv{command.program};
  argv.insert(argv.end(), command.args.begin(), command.args.end());
  std::vector<std::string> environment;
  environment.reserve(command.env.size());
  for (const auto& [key, value] : command.env) environment.push_back(fmt::format("{}={}", key, value));
  std::vector<Property> properties{
      property("Description", command.description), property("Type", std::string("oneshot")),
      property("ExecStart", std::vector<Exec>{Exec{command.program, argv, false}}),
      property("Environment", environment), property("TimeoutStartUSec", microseconds(limit)),
      property("TimeoutStopUSec", microseconds(stop_limit)),
      property("StandardErrorFileDescriptor", sdbus::UnixFd(errors.get())),
      // systemd keeps the ended unit while the agent holds a reference to it, and then removes it.
      property("AddRef", true), property("CollectMode", std::string("inactive-or-failed"))};
  if (output.is_open()) properties.push_back(property("StandardOutputFileDescriptor", sdbus::UnixFd(output.get())));
  return properties;
}

std::string read_part(const Descriptor& file, off_t from, off_t count) {
  std::string text(static_cast<std::size_t>(std::max<off_t>(count, 0)), '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

std::string end_of(const Descriptor& file) {
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  const off_t kept = std::min<off_t>(size, kept_errors);
  return read_part(file, size - kept, kept);
}

std::string beginning_of(const Descriptor& file) {
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  return read_part(file, 0, std::min<off_t>(size, unit_output_limit + 1));
}

BusMethod unit_property(const sdbus::ObjectPath& path, const char* interface, const char* name) {
  return {"org.freedesktop.systemd1", path, std::string("org.freedesktop.systemd1.") + interface, name};
}

// A unit that systemd has loaded. It has ended if it is not active and has no job that will start it.
struct LoadedUnit {
  sdbus::ObjectPath path;
  bool ended = false;
};

// Returns nothing if systemd has no unit of this name.
Task<std::optional<LoadedUnit>> find_unit(Bus& bus, std::string name, TimePoint deadline) {
  auto path = co_await bus_call<sdbus::ObjectPath>(bus, systemd1("GetUnit"), deadline, name);
  if (!path && is_bus_error(path.error(), no_such_unit)) co_return std::optional<LoadedUnit>();
  if (!path) co_return std::move(path).error();
  LoadedUnit unit{std::get<0>(*path)};
  CO_TRY(const std::string state,
         co_await bus_property<std::string>(bus, unit_property(unit.path, "Unit", "ActiveState"), deadline));
  CO_TRY(const Job job, co_await bus_property<Job>(bus, unit_property(unit.path, "Unit", "Job"), deadline));
  unit.ended = (state == "inactive" || state == "failed") && std::get<0>(job) == 0;
  co_return std::optional<LoadedUnit>(std::move(unit));
}

class Follower {
 public:
  Follower(Bus& bus, UnitCommand command)
      : bus_(bus),
        command_(std::move(command)),
        wake_(bus.executor()),
        listening_(bus, {{"type='signal',sender='org.freedesktop.systemd1',path='/org/freedesktop/systemd1',interface="
                          "'org.freedesktop.systemd1.Manager',member='JobRemoved'"},
                         [this](sdbus::Message& signal) { heard(signal); },
                         [this] {
                           subscribed_ = false;
                           wake_.notify();
                         }}) {}

  Task<UnitEnd> run(TimePoint deadline) {
    const Descriptor errors(::memfd_create("haulout-unit", MFD_CLOEXEC));
    const Descriptor output(command_.keeps_output ? ::memfd_create("haulout-unit", MFD_CLOEXEC) : -1);
    if (!errors.is_open() || (command_.keeps_output && !output.is_open()))
      co_return Error(Errc::unavailable, "memfd_create: " + std::generic_category().message(errno));
    CO_TRY(const bool ours, co_await start(errors, output, deadline));
    const TimePoint patience = saturating_add(deadline, 2 * stop_limit);
    CO_TRY(UnitEnd end, co_await follow(patience));
    end.ours = ours;
    if (ours) end.errors = end_of(errors);
    if (ours && output.is_open()) end.output = beginning_of(output);
    // The unit has ended, so a failure of UnrefUnit does not matter.
    static_cast<void>(co_await bus_call<>(bus_, systemd1("UnrefUnit"), patience, command_.unit));
    co_return std::move(end);
  }

 private:
  void heard(sdbus::Message& signal) {
    std::uint32_t id = 0;
    sdbus::ObjectPath job;
    std::string unit, result;
    if (read_values(signal, id, job, unit, result) && unit == command_.unit) wake_.notify();
  }

  // Starts the unit. Returns true if it was started, false if a unit that a previous agent started is still running.
  Task<bool> start(const Descriptor& errors, const Descriptor& output, TimePoint deadline) {
    CO_CHECK(co_await subscribe(deadline));
    const Duration limit = deadline - bus_.clock().now();
    auto started = co_await bus_call<sdbus::ObjectPath>(
        bus_, systemd1("StartTransientUnit"), deadline, command_.unit, std::string("fail"),
        properties_of(command_, std::max<Duration>(limit, std::chrono::seconds(1)), errors, output),
        std::vector<Auxiliary>());
    if (started) co_return true;
    if (!is_bus_error(started.error(), unit_exists)) co_return explain_refusal("systemd", std::move(started).error());
    // RefUnit fails if the unit ends at this moment. Its result is then lost, and follow() reports that.
    static_cast<void>(co_await bus_call<>(bus_, systemd1("RefUnit"), deadline, command_.unit));
    co_return false;
  }

  Task<> subscribe(TimePoint deadline) {
    if (subscribed_) co_return Result<>();
    subscribed_ = true;
    auto done = co_await bus_call<>(bus_, systemd1("Subscribe"), deadline);
    if (done || is_bus_error(done.error(), already_subscribed)) co_return Result<>();
    subscribed_ = false;
    co_return explain_refusal("systemd", std::move(done).error());
  }

  Task<UnitEnd> follow(TimePoint deadline) {
    for (;;) {
      CO_CHECK(co_await subscribe(deadline));
      auto end = co_await look(deadline);
      if (!end) co_return std::move(end).error();
      if (*end) co_return **std::move(end);
      const TimePoint now = bus_.clock().now();
      if (now >= deadline) break;
      co_await wake_.wait_until(bus_.clock(), std::min(deadline, now + look_again));
    }
    const TimePoint last = saturating_add(deadline, stop_limit);
    static_cast<void>(
        co_await bus_call<sdbus::ObjectPath>(bus_, systemd1("StopUnit"), last, command_.unit, std::string("replace")));
    co_return Error(Errc::timeout, fmt::format("unit {} did not finish in time", command_.unit));
  }

  // Returns how the unit ended, or nothing while it is running.
  Task<std::optional<UnitEnd>> look(TimePoint deadline) {
    CO_TRY(const auto unit, co_await find_unit(bus_, command_.unit, deadline));
    if (!unit)
      co_return Error(Errc::reset, fmt::format("unit {} was removed, so its result is unknown", command_.unit));
    if (!unit->ended) co_return std::optional<UnitEnd>();
    const auto property = [&](const char* name) { return unit_property(unit->path, "Service", name); };
    UnitEnd end;
    CO_TRY(end.result, co_await bus_property<std::string>(bus_, property("Result"), deadline));
    CO_TRY(end.code, co_await bus_property<std::int32_t>(bus_, property("ExecMainCode"), deadline));
    CO_TRY(end.status, co_await bus_property<std::int32_t>(bus_, property("ExecMainStatus"), deadline));
    co_return std::optional<UnitEnd>(std::move(end));
  }

  Bus& bus_;
  UnitCommand command_;
  Notifier wake_;
  bool subscribed_ = false;
  Listening listening_;
};

}  // namespace

bool UnitEnd::success() const {
  return result == "success" && code == CLD_EXITED && status == 0;
}

std::string describe_end(const UnitEnd& end) {
  std::string how = fmt::format("systemd reports {}", one_line(end.result));
  if (end.result == "timeout")
    how = "exceeded its time limit and was stopped";
  else if (end.result == "oom-kill")
    how = "killed because it, or the machine, had used up its memory";
  else if (end.code == CLD_EXITED)
    how = fmt::format("exit status {}", end.status);
  else if (end.code == CLD_KILLED || end.code == CLD_DUMPED)
    how = fmt::format("ended by signal {} ({})", end.status, ::strsignal(end.status));
  else if (end.result == "success")
    how = "was not run";
  const std::string last = last_line(end.errors);
  return last.empty() ? how : how + ": " + last;
}

Task<UnitEnd> run_unit(Bus& bus, UnitCommand command, TimePoint deadline) {
  Follower follower(bus, std::move(command));
  co_return co_await follower.run(deadline);
}

Task<bool> unit_runs(Bus& bus, std::string unit, TimePoint deadline) {
  const auto found = co_await find_unit(bus, std::move(unit), deadline);
  if (!found) co_return explain_refusal("systemd", found.error());
  co_return *found && !(*found)->ended;
}

Task<> UnitHooks::run(HookPoint point, std::string name, HookEnvironment environment, TimePoint deadline) {
  const std::string path = hook_path(hooks_dir_, point, name);
  const UnitCommand command{.unit = fmt::format("haulout-hook-{}-{}.service", to_string(point), name),
                            .program = path,
                            .args = {std::string(to_string(point))},
                            .env = std::move(environment),
                            .description = fmt::format("Haulout hook {}/{}", to_string(point), name)};
  auto end = co_await run_unit(bus_, command, deadline);
  // The result of a unit that a previous agent started may be lost. Hooks may run twice, so run it again.
  if (!end && end.error().code() == Errc::reset) end = co_await run_unit(bus_, command, deadline);
  if (!end) co_return std::move(end).error().with_context("hook " + path);
  if (end->success()) co_return Result<>();
  co_return Error(
      end->result == "timeout" ? Errc::timeout : Errc::unavailable,
      fmt::format("hook {}: {} (its stdout: journalctl -u {} on the node)", path, describe_end(*end), command.unit));
}

}  // namespace haulout::agent
