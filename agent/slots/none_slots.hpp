// --slots=none: for a node that needs no slot, such as the only node of its cluster. The node counts as a holder at all
// times. Never fails. Cancellable.
#pragma once

#include "agent/ports/slots.hpp"

namespace haulout::agent {

class NoneSlots final : public Slots {
 public:
  // Borrows the clock.
  explicit NoneSlots(Clock& clock) : clock_(clock) {}

  std::string name() const override { return "none"; }
  Task<Turn> take(TimePoint deadline) override { return confirm(deadline); }
  Task<Turn> confirm(TimePoint) override { co_return Turn{.ours = true, .slot = "none"}; }
  Task<> release(TimePoint) override { co_return Result<>(); }
  // Never returns.
  boost::asio::awaitable<void> changed() override { co_await clock_.sleep_until(TimePoint::max()); }

 private:
  Clock& clock_;
};

}  // namespace haulout::agent
