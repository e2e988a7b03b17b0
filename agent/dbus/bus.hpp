// The D-Bus system bus: its addresses, its errors, and the agent's connection to it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "retry/clock.hpp"
#include "retry/rng.hpp"
#include "retry/task.hpp"

namespace sdbus {
class Error;
}

namespace sdbus {
class Message;
}

namespace haulout::agent {

// The addresses on which the system bus listens. Pure.

// Returns the D-Bus addresses to try, in order. `environment` is the value of DBUS_SYSTEM_BUS_ADDRESS and may be null.
// If it has no address, returns the addresses of the two usual sockets beneath `host_root`.
std::vector<std::string> system_bus_addresses(std::string_view host_root, const char* environment);

// Returns the socket file of "unix:path=…", or nothing for any other kind of address.
std::optional<std::string> socket_path_of(std::string_view address);

// Converts D-Bus failures to Error. A refusal by the peer becomes Errc::status, with the D-Bus error name in
// PeerStatus::reason; callers decide by that name. Pure.

namespace bus_error {
inline constexpr std::string_view access_denied = "org.freedesktop.DBus.Error.AccessDenied";
inline constexpr std::string_view auth_failed = "org.freedesktop.DBus.Error.AuthFailed";
inline constexpr std::string_view invalid_args = "org.freedesktop.DBus.Error.InvalidArgs";
inline constexpr std::string_view name_has_no_owner = "org.freedesktop.DBus.Error.NameHasNoOwner";
inline constexpr std::string_view no_reply = "org.freedesktop.DBus.Error.NoReply";
inline constexpr std::string_view disconnected = "org.freedesktop.DBus.Error.Disconnected";
inline constexpr std::string_view service_unknown = "org.freedesktop.DBus.Error.ServiceUnknown";
inline constexpr std::string_view unknown_method = "org.freedesktop.DBus.Error.UnknownMethod";
inline constexpr std::string_view interactive_authorization =
    "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired";
}  // namespace bus_error

// Converts a failure. `what` names the service and the method that was called.
Error bus_failure(const std::string& what, const sdbus::Error& failure);
bool is_bus_error(const Error& error, std::string_view name);
// Returns true if the error means that the called service is not on the bus and could not be started.
bool is_absent(const Error& error);

// Returns a sentence about what can keep a container from using the host's bus, with the remedy.
std::string container_traps();

class BusLink;

// Names a method of a service on the bus, or a property (bus_property()).
struct BusMethod {
  std::string service;
  std::string path;
  std::string interface;
  std::string name;

  std::string what() const { return service + ": " + name; }
};

// Callbacks for signals. The bus calls both functions from inside its own code, so they may only store data and notify.
struct BusListener {
  std::vector<std::string> matches;  // D-Bus match rules
  std::function<void(sdbus::Message&)> on_signal;
  std::function<void()> on_connection;  // called when a connection is made or lost; signals may have been missed
};

// The agent's connection to the D-Bus system bus. It runs on the io_context without threads and reconnects after
// failures.
//
// run() connects, serves the connection, and reconnects with backoff after the bus has closed it. It connects by the
// socket's path each time, because a restarted bus creates a new socket. An idle bus causes no wake-up. Calls and
// signals make progress only while run() runs. When the connection is lost, a call that has been sent fails; a call
// that has not been sent waits for the new connection. A listener is subscribed again after a reconnection, and its
// `on_connection` is called.
//
// One thread. Borrows clock and rng. A Bus outlives its calls and its Listenings.
class Bus {
 public:
  Bus(boost::asio::any_io_executor executor, Clock& clock, Rng& rng, std::vector<std::string> addresses);
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;
  ~Bus();

  // Serves the bus. Runs until it is cancelled. Only one run() at a time.
  boost::asio::awaitable<void> run();

  bool connected() const { return link_ != nullptr; }
  const boost::asio::any_io_executor& executor() const { return executor_; }
  Clock& clock() const { return clock_; }
  // Returns the agent's unique name on the bus; empty while there is no connection.
  std::string unique_name() const;
  // Returns why there is no connection: the object, the cause and the remedy. Empty while there is a connection, and
  // during the first attempt to make one.
  const std::string& problem() const { return problem_; }

  // Calls a method; see bus_call.hpp for the typed form. `write` appends the arguments. `read` takes out the values and
  // returns whether they had the right types. Waits for a connection. Fails with
  //   Errc::status       the peer, or the bus on its behalf, answered with an error (see is_bus_error())
  //   Errc::timeout      no answer by the deadline; the call may have had an effect
  //   Errc::reset        the bus or the peer disconnected before it answered; the call may have had an effect
  //   Errc::unavailable  no connection by the deadline; nothing was sent
  //   Errc::decode       the answer has other types than expected
  // Cancellable; a late answer is dropped.
  using Write = std::function<void(sdbus::Message&)>;
  using Read = std::function<bool(sdbus::Message&)>;
  Task<> exchange(BusMethod method, Write write, Read read, TimePoint deadline);

 private:
  friend class Listening;
  struct Call;

  Task<std::shared_ptr<BusLink>> connect();
  Task<> send(Call& call, TimePoint deadline);
  void use(std::shared_ptr<BusLink> link);
  void subscribe(const BusListener& listener);
  // Wakes every call, and calls `on_connection` of every listener.
  void tell_all();

  boost::asio::any_io_executor executor_;
  Clock& clock_;
  Rng& rng_;
  std::vector<std::string> addresses_;
  std::shared_ptr<BusLink> link_;
  std::string problem_;
  std::set<Call*> calls_;
  std::set<const BusListener*> listeners_;
};

// Subscribes a listener for as long as this object lives. It must not be created or destroyed inside a bus callback.
// Borrows the bus.
class Listening {
 public:
  Listening(Bus& bus, BusListener listener);
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  ~Listening();

 private:
  Bus& bus_;
  BusListener listener_;
};

}  // namespace haulout::agent
