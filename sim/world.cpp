#include "sim/world.hpp"

namespace haulout::sim {

Agenda::Agenda(boost::asio::any_io_executor executor, Clock& clock) : clock_(clock), changed_(executor) {}

void Agenda::at(TimePoint when, std::function<void()> step) {
  steps_.emplace(std::pair(when, next_sequence_++), std::move(step));
  if (when < waiting_until_) changed_.notify();
}

boost::asio::awaitable<void> Agenda::run() {
  for (;;) {
    while (!steps_.empty() && steps_.begin()->first.first <= clock_.now()) {
      auto entry = steps_.extract(steps_.begin());
      entry.mapped()();
    }
    waiting_until_ = steps_.empty() ? TimePoint::max() : steps_.begin()->first.first;
    co_await changed_.wait_until(clock_, waiting_until_);
    waiting_until_ = TimePoint::min();
  }
}

}  // namespace haulout::sim
