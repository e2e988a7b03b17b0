// Methods and signals of the D-Bus services that the agent uses, spelled as in their documentation. Pure.
#pragma once

#include "agent/dbus/bus.hpp"

namespace haulout::agent {

// org.freedesktop.login1(5)
inline BusMethod login1(std::string name) {
  return {"org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", std::move(name)};
}

// org.freedesktop.systemd1(5)
inline BusMethod systemd1(std::string name) {
  return {"org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", std::move(name)};
}

// The bus itself: "Message Bus Messages" of the D-Bus specification.
inline BusMethod bus_driver(std::string name) {
  return {"org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", std::move(name)};
}

// Match rule for the signal that `name` has gained, lost or changed its owner.
inline std::string owner_changes(const std::string& name) {
  return "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0="
         "'" +
         name + "'";
}

}  // namespace haulout::agent
