#include "tests/agent/dbus/fakes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <stdexcept>

namespace haulout::testing {

void FakeService::connect(const std::string& address) {
  forget();
  object_.reset();
  auto link = agent::BusLink::open(executor_, address);
  if (!link) throw std::runtime_error(link.error().message());
  link_ = *link;
  object_ = sdbus::createObject(link_->connection(), path_);
  publish(*object_);
  object_->finishRegistration();
  link_->connection().requestName(name_);
}

boost::asio::awaitable<void> FakeService::serve() {
  const auto link = link_;
  co_await link->pump(clock_);
  if (link_ != link) co_return;  // connect() was called again in the meantime
  forget();
  object_.reset();
  link_.reset();
  event_.notify();
}

void FakeService::note(std::string call) {
  calls.push_back(std::move(call));
  event_.notify();
}

void FakeLogin1::publish(sdbus::IObject& object) {
  const std::string manager = "org.freedesktop.login1.Manager";
  object.registerMethod("CanReboot").onInterface(manager).implementedAs([this](sdbus::Result<std::string>&& result) {
    note("CanReboot");
    if (refusal) return result.returnError(*refusal);
    if (!silent) return result.returnResults(can_reboot);
    held_.push_back(std::move(result));
  });
  if (with_flags)
    object.registerMethod("RebootWithFlags").onInterface(manager).implementedAs([this](std::uint64_t flags) {
      note(fmt::format("RebootWithFlags({})", flags));
      if ((flags & 2) != 0 && !knows_kexec)
        throw sdbus::Error("org.freedesktop.DBus.Error.InvalidArgs", "Invalid flags parameter");
      if (refusal) throw sdbus::Error(*refusal);
    });
  object.registerMethod("Reboot").onInterface(manager).implementedAs([this](bool interactive) {
    note(fmt::format("Reboot({})", interactive));
    if (refusal) throw sdbus::Error(*refusal);
  });
  publish_inhibitors(object);
}

void FakeLogin1::publish_inhibitors(sdbus::IObject& object) {
  const std::string manager = "org.freedesktop.login1.Manager";
  if (numbers_for_words) {
    object.registerMethod("ListInhibitors").onInterface(manager).implementedAs([] { return std::uint32_t{7}; });
    object.registerProperty("BlockInhibited").onInterface(manager).withGetter([] { return std::uint32_t{7}; });
  } else {
    object.registerMethod("ListInhibitors").onInterface(manager).implementedAs([this] { return inhibitors; });
  }
  object.registerMethod("Inhibit").onInterface(manager).implementedAs(
      [this](const std::string& what, const std::string& who, const std::string&, const std::string& mode) {
        return inhibit(fmt::format("Inhibit({},{},{})", what, who, mode));
      });
  object.registerProperty("InhibitDelayMaxUSec").onInterface(manager).withGetter([this] {
    if (says_no_properties) throw sdbus::Error("org.freedesktop.DBus.Error.Failed", "not now");
    return delay_max_usec;
  });
  object.registerProperty("PreparingForShutdown").onInterface(manager).withGetter([this] { return preparing; });
  object.registerSignal("PrepareForShutdown").onInterface(manager).withParameters<bool>();
}

// The lock is the write end of a pipe. logind and this fake notice when the last holder closes it.
sdbus::UnixFd FakeLogin1::inhibit(const std::string& request) {
  note(request);
  if (refuses_locks) throw sdbus::Error("org.freedesktop.DBus.Error.AccessDenied", "no locks today");
  if (preparing) throw sdbus::Error("org.freedesktop.login1.OperationInProgress", "it is already running");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw sdbus::Error("org.example.NoPipe", "");
  auto reader = std::make_shared<boost::asio::posix::stream_descriptor>(executor(), ends[0]);
  readers_.push_back(reader);
  ++locks;
  reader->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this, reader](const boost::system::error_code& failure) {
                       if (failure) return;
                       --locks;
                       note("released");
                     });
  return sdbus::UnixFd(ends[1], sdbus::adopt_fd);
}

void FakeLogin1::end() {
  for (const auto& reader : readers_) reader->cancel();
}

void FakeLogin1::prepare(bool starts) {
  preparing = starts;
  object().emitSignal("PrepareForShutdown").onInterface("org.freedesktop.login1.Manager").withArguments(starts);
}

void FakeLogin1::answer_late() {
  for (const auto& result : held_) result.returnResults(can_reboot);
  held_.clear();
}

void FakeSystemd1::publish(sdbus::IObject& object) {
  const std::string manager = "org.freedesktop.systemd1.Manager";
  object.registerMethod("Reboot").onInterface(manager).implementedAs([this] { note("Reboot"); });
  using Unit = sdbus::Struct<std::string, std::string, std::string, std::string, std::string, std::string,
                             sdbus::ObjectPath, std::uint32_t, std::string, sdbus::ObjectPath>;
  object.registerMethod("ListUnitsByNames")
      .onInterface(manager)
      .implementedAs([this](const std::vector<std::string>& names) {
        std::vector<Unit> out;
        for (const std::string& name : names) {
          const auto found = active_states.find(name);
          const std::string state = found == active_states.end() ? "inactive" : found->second;
          out.push_back(
              Unit{name, name, "loaded", state, "x", "", sdbus::ObjectPath("/x"), 0u, "", sdbus::ObjectPath("/")});
        }
        return out;
      });
  object.registerProperty("UserspaceTimestampMonotonic").onInterface(manager).withGetter([this] {
    return userspace_began;
  });
  object.registerProperty("SystemState").onInterface(manager).withGetter([this] { return system_state; });
}

void FakeUpdate1::publish(sdbus::IObject& object) {
  const std::string manager = "com.coreos.update1.Manager";
  if (strange)
    object.registerMethod("GetStatus").onInterface(manager).implementedAs([] { return std::string("fine"); });
  else
    object.registerMethod("GetStatus").onInterface(manager).implementedAs([this] {
      note("GetStatus");
      if (attempted_ && !after_attempt.empty()) {
        operation = after_attempt.front();
        if (after_attempt.size() > 1) after_attempt.erase(after_attempt.begin());
      }
      return std::make_tuple(std::int64_t{1}, 0.5, operation, new_version, std::int64_t{2});
    });
  object.registerMethod("AttemptUpdate").onInterface(manager).implementedAs([this] {
    note("AttemptUpdate");
    attempted_ = true;
  });
  object.registerSignal("StatusUpdate")
      .onInterface(manager)
      .withParameters<std::int64_t, double, std::string, std::string, std::int64_t>();
}

void FakeUpdate1::send_status(double progress) {
  object()
      .emitSignal("StatusUpdate")
      .onInterface("com.coreos.update1.Manager")
      .withArguments(std::int64_t{1}, progress, operation, new_version, std::int64_t{2});
}

void FakeUpdate1::send_nonsense() {
  object().emitSignal("StatusUpdate").onInterface("com.coreos.update1.Manager").withArguments("what?");
}

void FakeRpmOstree1::publish(sdbus::IObject& object) {
  object.registerProperty("Deployments").onInterface("org.projectatomic.rpmostree1.Sysroot").withGetter([this] {
    note("Deployments");
    return deployments;
  });
}

void FakeRpmOstree1::tell() {
  object().emitPropertiesChangedSignal("org.projectatomic.rpmostree1.Sysroot", {"Deployments"});
}

}  // namespace haulout::testing
