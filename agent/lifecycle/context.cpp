#include "agent/lifecycle/context.hpp"

#include <utility>

#include "drain/reasons.hpp"

namespace haulout::agent {

Decision cordon_lost() {
  return {Event::cordon_lost, reason::uncordoned, "the node was uncordoned during its update"};
}

Activity::Activity(boost::asio::any_io_executor executor, Clock& clock, std::function<void()> remove_ready_file)
    : clock_(clock), remove_ready_file_(std::move(remove_ready_file)), changed_(std::move(executor)) {}

void Activity::interrupt(Decision decision) {
  decide(std::move(decision));
  remove_ready_file_();
  if (stop_) stop_();
  wake();
}

void Activity::interrupt_to_reload() {
  reload();
  remove_ready_file_();
  wake();
}

boost::asio::awaitable<void> Activity::wait(TimePoint until) {
  if (!must_reload_) co_await changed_.wait_until(clock_, until);
}

}  // namespace haulout::agent
