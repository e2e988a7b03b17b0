// The system bus as the agent sees it: one connection on the io_context, without threads, that comes back by itself.
//
// run() connects, serves the connection, and connects again with growing pauses when the bus has gone away; each time
// by the socket's path, because a restarted bus makes a new socket. An idle bus causes no wake-up. Nothing here works
// while nobody runs it. Calls and listeners survive a reconnection: a call that has not been sent waits for it, a
// listener is subscribed again and told to look.
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

// What wants to hear signals. Both functions are called from inside the bus: they note and notify, and do nothing else.
struct BusListener {
  std::vector<std::string> matches;  // D-Bus match rules
  std::function<void(sdbus::Message&)> on_signal;
  std::function<void()> on_connection;  // a connection has come or gone: signals may have been missed
};

class Bus {
 public:
  Bus(boost::asio::any_io_executor executor, Clock& clock, Rng& rng, std::vector<std::string> addresses);
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;
  ~Bus();

  // Until cancelled. Once at a time.
  boost::asio::awaitable<void> run();

  bool connected() const { return link_ != nullptr; }
  const boost::asio::any_io_executor& executor() const { return executor_; }
  Clock& clock() const { return clock_; }
  // Our name on the bus; empty while there is no connection.
  std::string unique_name() const;
  // Why there is no connection: thing, cause, way out. Empty while there is one or the first is being made.
  const std::string& problem() const { return problem_; }

  // Calls a method; see bus_call.hpp for the typed form. `write` appends the arguments, `read` takes the values out and
  // says whether they had the right types. Waits for a connection. Fails with
  //   Errc::status       the peer, or the bus in its stead, answered with an error (see bus_error.hpp)
  //   Errc::timeout      no answer by the deadline; whether the call had an effect is not known
  //   Errc::reset        the bus or the peer went away before it answered; the same
  //   Errc::unavailable  no connection by the deadline: nothing was sent
  //   Errc::decode       the answer has other types than expected
  // Cancellable: a late answer is dropped.
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
  // Every call and listener looks again.
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

// A listener is heard for as long as this lives. Made and destroyed outside of callbacks.
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
