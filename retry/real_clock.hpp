// The Clock that reads the clocks of the machine. No other code reads them. Owns nothing; each program has one.
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
