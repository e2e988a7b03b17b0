// Keeps the idle connections of one client, and owns them. take() prefers the connection that was used last. Closes a
// connection if it has been idle for `idle_timeout`, if the peer has closed it, or if there are more than `max_idle`.
// Idle times are checked only in take() and put(). Never waits; nothing fails.
#pragma once

#include <memory>
#include <vector>

#include "http/wire.hpp"
#include "retry/clock.hpp"

namespace haulout::http {

class Pool {
 public:
  Pool(std::size_t max_idle, Duration idle_timeout) : max_idle_(max_idle), idle_timeout_(idle_timeout) {}

  // Returns a connection that is still usable, or null if there is none.
  std::unique_ptr<Wire> take(TimePoint now);
  // Adds a connection. `generation` is the value of generation() when the connection was made: a connection from before
  // the last clear() is closed instead.
  void put(std::unique_ptr<Wire> wire, std::uint64_t generation, TimePoint now);
  void clear();
  // Closes the connections that have been idle since `then` or longer.
  void drop_idle_since(TimePoint then);
  std::uint64_t generation() const { return generation_; }
  std::size_t size() const { return idle_.size(); }

 private:
  struct Idle {
    std::unique_ptr<Wire> wire;
    TimePoint since;
  };
  void drop_old(TimePoint now);

  std::size_t max_idle_;
  Duration idle_timeout_;
  std::uint64_t generation_ = 0;
  std::vector<Idle> idle_;  // the connection that has been idle longest is first
};

}  // namespace haulout::http
