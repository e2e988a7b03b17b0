// The agenda of the simulated cluster: planned steps, ordered by (time, order of insertion), and the one coroutine that
// runs them. All parts of the cluster are plain functions that put their next step here. Therefore a simulation depends
// only on its inputs.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <map>

#include "retry/clock.hpp"
#include "retry/notifier.hpp"

namespace haulout::sim {

class Agenda {
 public:
  Agenda(boost::asio::any_io_executor executor, Clock& clock);

  void at(TimePoint when, std::function<void()> step);
  void after(Duration delay, std::function<void()> step) { at(saturating_add(clock_.now(), delay), std::move(step)); }
  // Runs each step when its time comes, until cancelled.
  boost::asio::awaitable<void> run();

  Clock& clock() const { return clock_; }

 private:
  Clock& clock_;
  Notifier changed_;
  TimePoint waiting_until_ = TimePoint::min();
  std::uint64_t next_sequence_ = 0;
  std::map<std::pair<TimePoint, std::uint64_t>, std::function<void()>> steps_;
};

}  // namespace haulout::sim
