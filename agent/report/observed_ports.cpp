#include "agent/report/observed_ports.hpp"

namespace haulout::agent {

boost::asio::awaitable<Pending> ObservedBackend::pending(TimePoint deadline) {
  Pending pending = co_await inner_.pending(deadline);
  tell_(pending);
  co_return pending;
}

Task<Turn> ObservedSlots::take(TimePoint deadline) {
  auto turn = co_await inner_.take(deadline);
  if (turn) tell_(turn->ours);
  co_return turn;
}

Task<Turn> ObservedSlots::confirm(TimePoint deadline) {
  auto turn = co_await inner_.confirm(deadline);
  if (turn) tell_(turn->ours);
  co_return turn;
}

Task<> ObservedSlots::release(TimePoint deadline) {
  auto released = co_await inner_.release(deadline);
  if (released) tell_(false);
  co_return released;
}

}  // namespace haulout::agent
