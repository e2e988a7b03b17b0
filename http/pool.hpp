// Idle connections of one client; the last used is taken first. Decides by the clock and by checking the sockets. Never
// waits. Owns the connections.
#pragma once

#include <memory>
#include <vector>

#include "http/wire.hpp"
#include "retry/clock.hpp"

namespace haulout::http {

class Pool {
 public:
  Pool(std::size_t max_idle, Duration idle_timeout) : max_idle_(max_idle), idle_timeout_(idle_timeout) {}

  // Returns a connection that is still usable, or null.
  std::unique_ptr<Wire> take(TimePoint now);
  // `generation` is the value of generation() when the connection was made. A connection from before the last clear()
  // is closed.
  void put(std::unique_ptr<Wire> wire, std::uint64_t generation, TimePoint now);
  void clear();
  // Closes the connections that were put back at `then` or earlier.
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
  std::vector<Idle> idle_;  // oldest first
};

}  // namespace haulout::http
