// The agent's connection to the D-Bus system bus. It runs on the io_context without threads and reconnects by itself.
//
// run() connects, serves the connection, and reconnects with backoff after the bus has closed it. It connects by the
// socket's path each time, because a restarted bus creates a new socket. An idle bus causes no wake-up. Calls and
// signals make progress only while run() runs. Calls and listeners survive a reconnection. A call that has not been
// sent waits for the new connection. A listener is subscribed again, and its `on_connection` is called.
//
// One thread. A Bus outlives its calls and its Listenings.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "retry/clock.hpp"
#include "retry/rng.hpp"
#include "retry/task.hpp"

namespace sdbus {
class Message;
}

namespace haulout::agent {

class BusLink;

struct BusMethod {
  std::string service;
  std::string path;
  std::string interface;
  std::string name;

  std::string what() const { return service + ": " + name; }
};

// Callbacks for signals. The bus calls both functions from inside its own code. They may only store data and notify.
struct BusListener {
  std::vector<std::string> matches;  // D-Bus match rules
  std::function<void(sdbus::Message&)> on_signal;
  std::function<void()> on_connection;  // called when a connection is made or lost; signals may have been missed
};

class Bus {
 public:
  Bus(boost::asio::any_io_executor executor, Clock& clock, Rng& rng, std::vector<std::string> addresses);
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;
  ~Bus();

  // Runs until it is cancelled. Only one run() at a time.
  boost::asio::awaitable<void> run();

  bool connected() const { return link_ != nullptr; }
  const boost::asio::any_io_executor& executor() const { return executor_; }
  Clock& clock() const { return clock_; }
  // The agent's unique name on the bus; empty while there is no connection.
  std::string unique_name() const;
  // Why there is no connection: the object, the cause and the remedy. Empty while there is a connection, and during the
  // first attempt to make one.
  const std::string& problem() const { return problem_; }

  // Calls a method; see bus_call.hpp for the typed form. `write` appends the arguments. `read` takes out the values and
  // returns whether they had the right types. Waits for a connection. Fails with
  //   Errc::status       the peer, or the bus on its behalf, answered with an error (see bus_error.hpp)
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
