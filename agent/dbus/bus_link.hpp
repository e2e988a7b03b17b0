// One connection to a D-Bus bus, served on an io_context by one thread: opened, pumped until it breaks, never reused.
// Replies and signals are handed to callbacks from inside the pump. Such a callback only notes what came and notifies:
// it must not suspend, throw, resume a coroutine in place or destroy what belongs to the connection.
#pragma once

#include <sdbus-c++/sdbus-c++.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "retry/clock.hpp"
#include "retry/notifier.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

class BusLink : public std::enable_shared_from_this<BusLink> {
 public:
  // Waits in place for the handshake: probe first. Errc::unreachable.
  static Result<std::shared_ptr<BusLink>> open(boost::asio::any_io_executor executor, const std::string& address);

  BusLink(boost::asio::any_io_executor executor, std::unique_ptr<sdbus::IConnection> connection);

  sdbus::IConnection& connection() { return *connection_; }
  const std::string& unique_name() const { return unique_name_; }
  // Serves the connection until it breaks; returns why. Once. Cancellable.
  boost::asio::awaitable<std::string> pump(Clock& clock);
  // The connection was used from outside the pump: what the pump waits for may have changed.
  void nudge() { wake_.notify(); }
  // Ends the pump.
  void fail(std::string why);

  // Hands signals to `handler` until forgotten. Asks the bus in place; a bus that refuses breaks the link.
  void listen(const void* owner, const std::vector<std::string>& matches, sdbus::message_handler handler);
  void forget(const void* owner);

 private:
  // Dispatches what has come and says what to wait for; the reason in failed_ when the connection is broken.
  TimePoint dispatch(Clock& clock);
  void watch(boost::asio::posix::stream_descriptor::wait_type type, bool& armed);

  std::unique_ptr<sdbus::IConnection> connection_;
  std::string unique_name_;
  std::map<const void*, std::vector<sdbus::Slot>> slots_;
  boost::asio::posix::stream_descriptor descriptor_;  // a duplicate: the connection closes its own
  Notifier wake_;
  std::string failed_;
  bool reading_ = false;
  bool writing_ = false;
};

}  // namespace haulout::agent
