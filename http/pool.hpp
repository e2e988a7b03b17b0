// Idle connections of one client, last used first. Decides by the clock and by looking at the sockets; never waits.
#pragma once

#include <memory>
#include <vector>

#include "http/wire.hpp"
#include "retry/clock.hpp"

namespace haulout::http {

class Pool {
 public:
  Pool(std::size_t max_idle, Duration idle_timeout) : max_idle_(max_idle), idle_timeout_(idle_timeout) {}

  // One that is still good, or nothing.
  std::unique_ptr<Wire> take(TimePoint now);
  // `generation` is the one that generation() named when the connection was made; one from before the last clear() is
  // closed.
  void put(std::unique_ptr<Wire> wire, std::uint64_t generation, TimePoint now);
  void clear();
  // Closes those that were put back by then.
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
