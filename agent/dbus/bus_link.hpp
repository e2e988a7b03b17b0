// One connection to a bus, and the check whether a D-Bus server answers on its socket. Used only by Bus.
#pragma once

#include <sdbus-c++/sdbus-c++.h>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/dbus/sdbus_versions.hpp"
#include "retry/clock.hpp"
#include "retry/notifier.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// Checks whether a D-Bus server answers on the socket of a bus: authenticates as the D-Bus library does, then
// disconnects. systemd often keeps the socket open while the bus is stopped or starting. Such a socket accepts
// connections but may not answer for a long time, and the handshake of the D-Bus library would block the thread
// meanwhile. Fails with Errc::unreachable. Cancellable.
Task<> probe_bus(Clock& clock, std::string socket_path, TimePoint deadline);

// One connection to a D-Bus bus, served on an io_context by one thread. It is opened, pumped until it breaks, and never
// reused. The pump calls the callbacks for replies and signals. Such a callback may only store data and notify. It must
// not suspend, throw, resume a coroutine before it returns, or destroy anything that belongs to the connection.
class BusLink : public std::enable_shared_from_this<BusLink> {
 public:
  // Opens a connection. Blocks the thread during the handshake, so callers probe the bus first. Fails with
  // Errc::unreachable.
  static Result<std::shared_ptr<BusLink>> open(boost::asio::any_io_executor executor, const std::string& address);

  BusLink(boost::asio::any_io_executor executor, std::unique_ptr<sdbus::IConnection> connection);

  sdbus::IConnection& connection() { return *connection_; }
  const std::string& unique_name() const { return unique_name_; }
  // Serves the connection until it breaks, and returns the reason. Call it only once. Cancellable.
  boost::asio::awaitable<std::string> pump(Clock& clock);
  // Wakes the pump after the connection was used from outside it, because the events to wait for may have changed.
  void nudge() { wake_.notify(); }
  // Ends the pump, which then returns `why`.
  void fail(std::string why);

  // Passes signals to `handler` until forget(owner). Blocks while the bus adds the match rules. If the bus refuses one,
  // the link fails.
  void listen(const void* owner, const std::vector<std::string>& matches, sdbus_versions::MessageHandler handler);
  void forget(const void* owner);

 private:
  // Handles the messages that have arrived. Returns the time until which to wait. If the connection is broken, sets
  // `failed_` to the reason.
  TimePoint dispatch(Clock& clock);
  void watch(boost::asio::posix::stream_descriptor::wait_type type, bool& armed);

  std::unique_ptr<sdbus::IConnection> connection_;
  std::string unique_name_;
  std::map<const void*, std::vector<sdbus::Slot>> slots_;
  boost::asio::posix::stream_descriptor descriptor_;  // a duplicate, because the connection closes its own
  Notifier wake_;
  std::string failed_;
  bool reading_ = false;
  bool writing_ = false;
};

}  // namespace haulout::agent
