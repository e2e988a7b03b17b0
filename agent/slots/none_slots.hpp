// --slots=none: for a machine on its own. It always has a slot. Never fails.
#pragma once

#include "agent/ports/slots.hpp"

namespace haulout::agent {

class NoneSlots final : public Slots {
 public:
  // Borrows the clock.
  explicit NoneSlots(Clock& clock) : clock_(clock) {}

  std::string name() const override { return "none"; }
  Task<Turn> take(TimePoint deadline) override;
  Task<Turn> confirm(TimePoint deadline) override;
  Task<> release(TimePoint deadline) override;
  // Never returns.
  boost::asio::awaitable<void> changed() override;

 private:
  Clock& clock_;
};

}  // namespace haulout::agent
