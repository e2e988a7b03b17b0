// Clock over the machine's own clocks: the only reader of them in this tree. Owns nothing; one per program.
#pragma once

#include "retry/clock.hpp"

namespace haulout {

class RealClock final : public Clock {
 public:
  TimePoint now() const override;
  WallTime wall_now() const override;
  std::unique_ptr<Alarm> set_alarm(boost::asio::any_io_executor executor, TimePoint when,
                                   std::function<void()> ring) override;
};

}  // namespace haulout
