// Returns the memory of rare work to the system when the agent has become idle.
//
// The start, a drain and a reboot use code and memory that an idle agent never uses again. That is two thirds of the
// memory of the process. Borrows the clock.
#pragma once

#include <functional>

#include "retry/notifier.hpp"

namespace haulout::agent {

// Returns free heap to the system, and drops the unmodified pages of programs and libraries from this process. The
// kernel loads a dropped page from the page cache when it is needed again. Takes about a millisecond.
void give_memory_back();

class QuietMemory {
 public:
  // Time without activity after which the agent counts as idle.
  static constexpr Duration quiet = std::chrono::seconds(20);

  QuietMemory(boost::asio::any_io_executor executor, Clock& clock, std::function<void()> give_back = give_memory_back);

  // Reports activity.
  void stir() { news_.notify(); }
  // Gives memory back once after each period of activity. Sleeps until the next activity. Runs until it is cancelled.
  boost::asio::awaitable<void> run();

 private:
  Clock& clock_;
  Notifier news_;
  std::function<void()> give_back_;
};

}  // namespace haulout::agent
