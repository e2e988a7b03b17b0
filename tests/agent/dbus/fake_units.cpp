#include "tests/agent/dbus/fake_units.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace haulout::testing {
namespace {

const std::string manager_name = "org.freedesktop.systemd1.Manager";
using Auxiliary = sdbus::Struct<std::string, std::vector<FakeUnits::Property>>;

std::string path_of(const std::string& name) {
  std::string path = "/org/freedesktop/systemd1/unit/";
  for (const char c : name) path += std::isalnum(static_cast<unsigned char>(c)) ? std::string(1, c) : "_";
  return path;
}

}  // namespace

void FakeUnits::publish(sdbus::IObject& object) {
  FakeInterface manager(object, manager_name);
  manager.method("Subscribe", [this] { note("Subscribe"); });
  manager.method("StartTransientUnit", [this](const std::string& name, const std::string& mode,
                                              const std::vector<Property>& properties, const std::vector<Auxiliary>&) {
    if (mode != "fail") throw dbus_error("org.example.Mode", mode);
    return start(name, properties);
  });
  manager.method("GetUnit", [this](const std::string& name) {
    if (!units.contains(name)) throw dbus_error("org.freedesktop.systemd1.NoSuchUnit", "not loaded");
    return sdbus::ObjectPath(path_of(name));
  });
  for (const char* method : {"RefUnit", "UnrefUnit"})
    manager.method(method, [this, method](const std::string& name) {
      note(fmt::format("{}({})", method, name));
      if (!units.contains(name)) throw dbus_error("org.freedesktop.systemd1.NoSuchUnit", "not loaded");
    });
  manager.method("StopUnit", [this](const std::string& name, const std::string&) {
    note(fmt::format("StopUnit({})", name));
    return sdbus::ObjectPath("/org/freedesktop/systemd1/job/2");
  });
  manager.signal<std::uint32_t, sdbus::ObjectPath, std::string, std::string>("JobRemoved");
}

sdbus::ObjectPath FakeUnits::start(const std::string& name, const std::vector<Property>& properties) {
  if (refusal) throw sdbus::Error(*refusal);
  if (units.contains(name)) throw dbus_error("org.freedesktop.systemd1.UnitExists", "was already loaded");
  for (const Property& property : properties) units[name].properties[std::get<0>(property)] = std::get<1>(property);
  publish_unit(name);
  note(fmt::format("Start({})", name));
  return sdbus::ObjectPath("/org/freedesktop/systemd1/job/1");
}

void FakeUnits::publish_unit(const std::string& name) {
  Unit& unit = units[name];
  unit.object = sdbus::createObject(connection(), sdbus::ObjectPath(path_of(name)));
  FakeInterface every_unit(*unit.object, "org.freedesktop.systemd1.Unit");
  FakeInterface service(*unit.object, "org.freedesktop.systemd1.Service");
  every_unit.property("ActiveState", [&unit] { return unit.active_state; });
  every_unit.property("Job", [&unit] { return Job{unit.job, sdbus::ObjectPath("/")}; });
  service.property("Result", [&unit] { return unit.result; });
  service.property("ExecMainCode", [&unit] { return unit.code; });
  service.property("ExecMainStatus", [&unit] { return unit.status; });
  offer(*unit.object);
}

void FakeUnits::add_running(const std::string& name) {
  units[name].active_state = "activating";
  publish_unit(name);
}

void FakeUnits::end_unit(const std::string& name, const std::string& result, std::int32_t code, std::int32_t status,
                         const std::string& errors, const std::string& output) {
  Unit& unit = units.at(name);
  const auto write_to = [&unit](const char* property, const std::string& text) {
    const auto found = unit.properties.find(property);
    if (found == unit.properties.end()) return;
    const auto file = found->second.get<sdbus::UnixFd>();
    if (::write(file.get(), text.data(), text.size()) < 0) throw std::runtime_error("write");
  };
  write_to("StandardErrorFileDescriptor", errors);
  write_to("StandardOutputFileDescriptor", output);
  unit.active_state = result == "success" ? "inactive" : "failed";
  unit.result = result;
  unit.code = code;
  unit.status = status;
  unit.job = 0;
  object()
      .emitSignal("JobRemoved")
      .onInterface(manager_name)
      .withArguments(std::uint32_t{1}, sdbus::ObjectPath("/org/freedesktop/systemd1/job/1"), name,
                     std::string(result == "success" ? "done" : "failed"));
}

void FakeUnits::collect(const std::string& name) {
  units.erase(name);
  object()
      .emitSignal("JobRemoved")
      .onInterface(manager_name)
      .withArguments(std::uint32_t{1}, sdbus::ObjectPath("/org/freedesktop/systemd1/job/1"), name, std::string("done"));
}

}  // namespace haulout::testing
