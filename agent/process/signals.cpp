#include "agent/process/signals.hpp"

#include <boost/asio/use_awaitable.hpp>
#include <csignal>

#include "retry/task_group.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

asio::awaitable<void> stop_on_signal(Signals& signals, TaskGroup& group, std::optional<int>& caught) {
  caught = co_await signals.wait();
  group.cancel();
}

bool is_ignored(int signal) {
  struct sigaction present{};
  return ::sigaction(signal, nullptr, &present) == 0 && present.sa_handler == SIG_IGN;
}

}  // namespace

Signals::Signals(asio::any_io_executor executor) : set_(executor, SIGTERM) {
  for (const int signal : {SIGINT, SIGHUP})
    if (!is_ignored(signal)) set_.add(signal);
}

asio::awaitable<int> Signals::wait() {
  const int signal = co_await set_.async_wait(asio::use_awaitable);
  set_.clear();  // restores the default actions, which work even if this process hangs
  std::signal(SIGHUP, SIG_IGN);
  co_return signal;
}

asio::awaitable<std::optional<int>> until_signal(Signals& signals, asio::awaitable<void> work,
                                                 std::vector<asio::awaitable<void>> helpers) {
  std::optional<int> caught;
  const auto body = [&](TaskGroup& group) {
    group.spawn(stop_on_signal(signals, group, caught));
    for (asio::awaitable<void>& helper : helpers) group.spawn(std::move(helper));
    return std::move(work);
  };
  co_await with_task_group(body);
  co_return caught;
}

}  // namespace haulout::agent
