#include "agent/service/quiet_memory.hpp"

#include <malloc.h>

namespace haulout::agent {
namespace asio = boost::asio;

void give_memory_back() {
  ::malloc_trim(0);
}

QuietMemory::QuietMemory(asio::any_io_executor executor, Clock& clock, std::function<void()> give_back)
    : clock_(clock), news_(std::move(executor)), give_back_(std::move(give_back)) {}

asio::awaitable<void> QuietMemory::run() {
  for (;;) {
    co_await news_.wait_until(clock_, TimePoint::max());
    bool more = true;
    while (more) more = co_await news_.wait_until(clock_, clock_.now() + quiet);
    give_back_();
  }
}

}  // namespace haulout::agent
