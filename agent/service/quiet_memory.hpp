// Gives the memory of rare work back once it has become quiet.
//
// Coming up, a drain and a reboot run code and allocate memory that an agent with nothing to do never touches again:
// two thirds of what its process holds. Borrows the clock.
#pragma once

#include <functional>

#include "retry/notifier.hpp"

namespace haulout::agent {

// Free heap goes back to the system, and pages of programs and libraries that nobody can have changed leave this
// process; whatever is needed again comes back from the page cache by itself. Costs about a millisecond.
void give_memory_back();

class QuietMemory {
 public:
  // So long after the last news it is quiet.
  static constexpr Duration quiet = std::chrono::seconds(20);

  QuietMemory(boost::asio::any_io_executor executor, Clock& clock, std::function<void()> give_back = give_memory_back);

  // Something happened.
  void stir() { news_.notify(); }
  // Gives back once after each time of news. Runs until cancelled; asleep for as long as there are no news.
  boost::asio::awaitable<void> run();

 private:
  Clock& clock_;
  Notifier news_;
  std::function<void()> give_back_;
};

}  // namespace haulout::agent
