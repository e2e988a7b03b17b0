// A dbus-daemon of the test's own, with its socket where a host has it: <root>/run/dbus/system_bus_socket.
#pragma once

#include <sys/types.h>

#include <string>

namespace haulout::testing {

class PrivateBus {
 public:
  // `root` exists. `rules`: further policy rules, which win over "everybody may do everything".
  explicit PrivateBus(std::string root, std::string rules = "");
  PrivateBus(const PrivateBus&) = delete;
  PrivateBus& operator=(const PrivateBus&) = delete;
  ~PrivateBus();

  // Accepts connections when this returns; throws when there is no dbus-daemon.
  void start();
  // Every connection breaks and the socket's file is gone.
  void stop();

  std::string socket() const { return root_ + "/run/dbus/system_bus_socket"; }
  std::string address() const { return "unix:path=" + socket(); }

 private:
  void write_configuration() const;

  std::string root_;
  std::string rules_;
  pid_t daemon_ = -1;
};

}  // namespace haulout::testing
