// Records on the agent's Node that the agent has not written. A record on the Node takes precedence, so the agent reads
// it and goes on from there. A person may have removed the record, or a late write of a previous process may have
// arrived: then one reading is enough. If another agent runs for the same node, each would undo what the other one
// does, so the agent gives way with a growing backoff, and reports the other agent.
#pragma once

#include <functional>
#include <string>

#include "retry/backoff.hpp"
#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

class ForeignRecords {
 public:
  // `warn` is called with a message about a second agent. Borrows clock and rng.
  ForeignRecords(Clock& clock, Rng& rng, std::string node, std::function<void(std::string)> warn);

  // A foreign record was seen.
  void note() { seen_ = true; }
  // If one was seen: waits with backoff. Cancellable.
  boost::asio::awaitable<void> give_way();
  bool seen() const { return seen_; }

 private:
  Clock& clock_;
  Rng& rng_;
  std::string node_;
  std::function<void(std::string)> warn_;
  Backoff backoff_;
  bool seen_ = false;     // since the last give_way()
  TimePoint gave_way_{};  // end of the last give_way()
  unsigned in_a_row_ = 0;
};

}  // namespace haulout::agent
