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
  object_ = sdbus::createObject(link_->connection(), sdbus::ObjectPath(path_));
  publish(*object_);
  offer(*object_);
  link_->connection().requestName(agent::sdbus_versions::ServiceName(name_));
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
  FakeInterface manager(object, "org.freedesktop.login1.Manager");
  manager.method("CanReboot", [this](sdbus::Result<std::string>&& result) {
    note("CanReboot");
    if (refusal) return result.returnError(*refusal);
    if (!silent) return result.returnResults(can_reboot);
    held_.push_back(std::move(result));
  });
  if (with_flags)
    manager.method("RebootWithFlags", [this](std::uint64_t flags) {
      note(fmt::format("RebootWithFlags({})", flags));
      if ((flags & 2) != 0 && !knows_kexec)
        throw dbus_error("org.freedesktop.DBus.Error.InvalidArgs", "Invalid flags parameter");
      if (refusal) throw sdbus::Error(*refusal);
    });
  manager.method("Reboot", [this](bool interactive) {
    note(fmt::format("Reboot({})", interactive));
    if (refusal) throw sdbus::Error(*refusal);
  });
  publish_inhibitors(object);
}

void FakeLogin1::publish_inhibitors(sdbus::IObject& object) {
  FakeInterface manager(object, "org.freedesktop.login1.Manager");
  if (numbers_for_words) {
    manager.method("ListInhibitors", [] { return std::uint32_t{7}; });
    manager.property("BlockInhibited", [] { return std::uint32_t{7}; });
  } else {
    manager.method("ListInhibitors", [this] { return inhibitors; });
  }
  manager.method("Inhibit",
                 [this](const std::string& what, const std::string& who, const std::string&, const std::string& mode) {
                   return inhibit(fmt::format("Inhibit({},{},{})", what, who, mode));
                 });
  manager.property("InhibitDelayMaxUSec", [this] {
    if (says_no_properties) throw dbus_error("org.freedesktop.DBus.Error.Failed", "not now");
    return delay_max_usec;
  });
  manager.property("PreparingForShutdown", [this] { return preparing; });
  manager.signal<bool>("PrepareForShutdown");
}

// The lock is the write end of a pipe. logind and this fake notice when the last holder closes it.
sdbus::UnixFd FakeLogin1::inhibit(const std::string& request) {
  note(request);
  if (refuses_locks) throw dbus_error("org.freedesktop.DBus.Error.AccessDenied", "no locks today");
  if (preparing) throw dbus_error("org.freedesktop.login1.OperationInProgress", "it is already running");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw dbus_error("org.example.NoPipe", "");
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
  FakeInterface manager(object, "org.freedesktop.systemd1.Manager");
  manager.method("Reboot", [this] { note("Reboot"); });
  using Unit = sdbus::Struct<std::string, std::string, std::string, std::string, std::string, std::string,
                             sdbus::ObjectPath, std::uint32_t, std::string, sdbus::ObjectPath>;
  manager.method("ListUnitsByNames", [this](const std::vector<std::string>& names) {
    std::vector<Unit> out;
    for (const std::string& name : names) {
      const auto found = active_states.find(name);
      const std::string state = found == active_states.end() ? "inactive" : found->second;
      out.push_back(
          Unit{name, name, "loaded", state, "x", "", sdbus::ObjectPath("/x"), 0u, "", sdbus::ObjectPath("/")});
    }
    return out;
  });
  manager.property("UserspaceTimestampMonotonic", [this] { return userspace_began; });
  manager.property("SystemState", [this] { return system_state; });
}

void FakeUpdate1::publish(sdbus::IObject& object) {
  FakeInterface manager(object, "com.coreos.update1.Manager");
  if (strange)
    manager.method("GetStatus", [] { return std::string("fine"); });
  else
    manager.method("GetStatus", [this] {
      note("GetStatus");
      if (attempted_ && !after_attempt.empty()) {
        operation = after_attempt.front();
        if (after_attempt.size() > 1) after_attempt.erase(after_attempt.begin());
      }
      return std::make_tuple(std::int64_t{1}, 0.5, operation, new_version, std::int64_t{2});
    });
  manager.method("AttemptUpdate", [this] {
    note("AttemptUpdate");
    attempted_ = true;
  });
  manager.signal<std::int64_t, double, std::string, std::string, std::int64_t>("StatusUpdate");
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
  FakeInterface(object, "org.projectatomic.rpmostree1.Sysroot").property("Deployments", [this] {
    note("Deployments");
    return deployments;
  });
}

void FakeRpmOstree1::tell() {
  object().emitPropertiesChangedSignal(agent::sdbus_versions::InterfaceName("org.projectatomic.rpmostree1.Sysroot"),
                                       {PropertyName("Deployments")});
}

}  // namespace haulout::testing
