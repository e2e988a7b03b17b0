// Runs a dbus-daemon for a test. Its socket is where a host has it: <root>/run/dbus/system_bus_socket. Owns the
// daemon's process.
#pragma once

#include <sys/types.h>

#include <string>

namespace haulout::testing {

class PrivateBus {
 public:
  // `root` must exist. `rules` are further policy rules. They override the default, which permits everything to
  // everybody.
  explicit PrivateBus(std::string root, std::string rules = "");
  PrivateBus(const PrivateBus&) = delete;
  PrivateBus& operator=(const PrivateBus&) = delete;
  ~PrivateBus();

  // Starts the daemon, which accepts connections when this returns. Throws if the daemon does not start, for example
  // because dbus-daemon is not installed.
  void start();
  // Stops the daemon. All connections break, and the socket's file is removed.
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
