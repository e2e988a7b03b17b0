#include "agent/dbus/bus_error.hpp"

#include <fmt/format.h>
#include <sdbus-c++/Error.h>

namespace haulout::agent {

Error bus_failure(const std::string& what, const sdbus::Error& failure) {
  const std::string& name = failure.getName();
  // Calls have no timeout of the library's own. NoReply and Disconnected therefore both mean that the connection or the
  // peer was closed.
  if (name == bus_error::no_reply || name == bus_error::disconnected)
    return Error(Errc::reset, fmt::format("{}: the service ended without an answer: {}", what, failure.getMessage()));
  Error out(Errc::status, fmt::format("{}: {} ({})", what, failure.getMessage(), name));
  out.peer.emplace();
  out.peer->reason = name;
  out.peer->message = failure.getMessage();
  out.peer->structured = true;
  return out;
}

bool is_bus_error(const Error& error, std::string_view name) {
  return error.code() == Errc::status && error.peer && error.peer->reason == name;
}

bool is_absent(const Error& error) {
  return is_bus_error(error, bus_error::service_unknown) || is_bus_error(error, bus_error::name_has_no_owner) ||
         (error.code() == Errc::status && error.peer &&
          error.peer->reason.starts_with("org.freedesktop.DBus.Error.Spawn."));
}

std::string container_traps() {
  return "in a pod, AppArmor or SELinux may forbid access to the host's bus: with AppArmor (Ubuntu, Debian) set "
         "securityContext.appArmorProfile.type to Unconfined, with SELinux (RHEL, Fedora, MicroOS) "
         "securityContext.seLinuxOptions.type to spc_t, on Bottlerocket to super_t; run as uid 0 of the host (not with "
         "hostUsers: false)";
}

}  // namespace haulout::agent
