// Returns free heap to the system when the agent has become idle.
//
// The start, a drain and a reboot need heap that an idle agent does not need again. The allocator keeps freed heap for
// the process, so it would stay in memory for weeks. Borrows the clock.
#pragma once

#include <functional>

#include "retry/notifier.hpp"

namespace haulout::agent {

// Returns free heap to the system. Takes less than a millisecond. Does not release the pages of the program itself,
// because the kernel drops them when it needs the memory.
void give_memory_back();

class QuietMemory {
 public:
  // Time without activity after which the agent counts as idle.
  static constexpr Duration quiet = std::chrono::seconds(20);

  QuietMemory(boost::asio::any_io_executor executor, Clock& clock, std::function<void()> give_back = give_memory_back);

  // Reports activity of the agent.
  void stir() { news_.notify(); }
  // Returns free heap to the system once after each period of activity, and sleeps until the next activity. Runs until
  // it is cancelled.
  boost::asio::awaitable<void> run();

 private:
  Clock& clock_;
  Notifier news_;
  std::function<void()> give_back_;
};

}  // namespace haulout::agent
