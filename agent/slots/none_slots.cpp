#include "agent/slots/none_slots.hpp"

namespace haulout::agent {

Task<Turn> NoneSlots::take(TimePoint deadline) {
  return confirm(deadline);
}

Task<Turn> NoneSlots::confirm(TimePoint) {
  co_return Turn{.ours = true, .slot = "none"};
}

Task<> NoneSlots::release(TimePoint) {
  co_return Result<>();
}

boost::asio::awaitable<void> NoneSlots::changed() {
  co_await clock_.sleep_until(TimePoint::max());
}

}  // namespace haulout::agent
