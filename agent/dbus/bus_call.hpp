// Typed calls over a Bus, and the methods and signals that the agent uses. Only for source files that use the types of
// sdbus-c++.
#pragma once

#include <sdbus-c++/sdbus-c++.h>
#include <tuple>

#include "agent/dbus/bus.hpp"
#include "agent/dbus/sdbus_versions.hpp"

namespace haulout::agent {

// Methods and signals of the D-Bus services that the agent uses, spelled as in their documentation. Pure.

// Source: org.freedesktop.login1(5)
inline BusMethod login1(std::string name) {
  return {"org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", std::move(name)};
}

// Source: org.freedesktop.systemd1(5)
inline BusMethod systemd1(std::string name) {
  return {"org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", std::move(name)};
}

// Methods of the bus itself: "Message Bus Messages" of the D-Bus specification.
inline BusMethod bus_driver(std::string name) {
  return {"org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", std::move(name)};
}

// Returns the match rule for the signal that `name` has gained, lost or changed its owner.
inline std::string owner_changes(const std::string& name) {
  return "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0="
         "'" +
         name + "'";
}

// Typed calls over a Bus. bus_call<Out…>(bus, method, deadline, arguments…) returns the Out values as a tuple.
// bus_property<T>() returns one property. Both fail as Bus::exchange() does, and are cancellable. They borrow the bus;
// the caller awaits each call in the expression that makes it.

// Reads the values in order. Returns false if there are too few or their types differ.
template <class... Out>
bool read_values(sdbus::Message& message, Out&... out) {
  try {
    return ((message >> out, static_cast<bool>(message)) && ...);
  } catch (const sdbus::Error&) {
    return false;
  }
}

template <class... Out, class... In>
Task<std::tuple<Out...>> bus_call(Bus& bus, BusMethod method, TimePoint deadline, In... in) {
  std::tuple<Out...> out;
  const auto write = [&in...](sdbus::Message& message) { (void)(message << ... << in); };
  const auto read = [&out](sdbus::Message& message) {
    return std::apply([&message](auto&... value) { return read_values(message, value...); }, out);
  };
  auto done = co_await bus.exchange(std::move(method), write, read, deadline);
  if (!done) co_return std::move(done).error();
  co_return std::move(out);
}

// `property.name` is the name of the property; Properties.Get reads it.
template <class T>
Task<T> bus_property(Bus& bus, BusMethod property, TimePoint deadline) {
  BusMethod get{property.service, property.path, "org.freedesktop.DBus.Properties", "Get"};
  T out{};
  const auto write = [&property](sdbus::Message& message) { message << property.interface << property.name; };
  const auto read = [&out](sdbus::Message& message) {
    try {
      sdbus_versions::enter_variant<T>(message);
      return read_values(message, out);
    } catch (const sdbus::Error&) {
      return false;
    }
  };
  auto done = co_await bus.exchange(std::move(get), write, read, deadline);
  if (!done) co_return std::move(done).error().with_context(property.name);
  co_return std::move(out);
}

}  // namespace haulout::agent
