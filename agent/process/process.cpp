#include "agent/process/process.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <csignal>
#include <utility>

#include "retry/task_group.hpp"

#ifndef HAULOUT_VERSION
#define HAULOUT_VERSION "0.0.0"
#endif

namespace haulout::agent {

std::string_view version() {
  return HAULOUT_VERSION;
}

std::string user_agent(std::string_view command) {
  return fmt::format("haulout/{} ({})", version(), command);
}

namespace {

// Bytes of one write. At most PIPE_BUF: a pipe accepts that many without blocking after poll() has reported it
// writable.
constexpr std::size_t chunk = 4096;

}  // namespace

void FdSink::write(std::string_view text) {
  if (broken_) return;
  if (backlog() + text.size() > backlog_limit) return;
  pending_ += text;
  if (before_) before_->pump();
  if (!executor_) return pump();
  if (std::exchange(gathers_, true)) return;
  boost::asio::post(executor_, [this] {
    gathers_ = false;
    pump();
  });
}

bool FdSink::has_reader() {
  if (broken_) return false;
  pollfd entry{fd_, 0, 0};
  return ::poll(&entry, 1, 0) <= 0 || (entry.revents & (POLLERR | POLLHUP)) == 0;
}

void FdSink::pump() {
  while (!broken_ && backlog() != 0 && wait_writable(0) && write_some()) {
  }
}

void FdSink::flush(int patience_ms) {
  while (!broken_ && backlog() != 0 && wait_writable(patience_ms)) write_some();
}

bool FdSink::wait_writable(int timeout_ms) {
  for (;;) {
    pollfd entry{fd_, POLLOUT, 0};
    const int ready = ::poll(&entry, 1, timeout_ms);
    if (ready > 0) return true;  // also on POLLERR: write() then returns the cause
    if (ready == 0) return false;
    if (errno != EINTR) {
      broken_ = true;
      return false;
    }
  }
}

bool FdSink::write_some() {
  const std::size_t size = std::min(chunk, backlog());
  const ssize_t count = ::write(fd_, pending_.data() + written_, size);
  if (count < 0) {
    if (errno == EINTR || errno == EAGAIN) return errno == EINTR;
    failure_ = errno == EPIPE ? 0 : errno;
    broken_ = true;
    pending_.clear();
    written_ = 0;
    return false;
  }
  written_ += static_cast<std::size_t>(count);
  if (written_ == pending_.size()) {
    pending_.clear();
    written_ = 0;
  } else if (written_ > pending_.size() / 2) {
    pending_.erase(0, written_);
    written_ = 0;
  }
  return true;
}

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
  set_.clear();  // restores the default actions of the signals, which end the process even if it hangs
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

int exit_code(const drain::Report& report) {
  if (const auto& retirement = report.retirement) {
    if (retirement->outcome == drain::RetirementOutcome::retired) return exit_done;
    return retirement->connection_failed ? exit_connection : exit_not_done;
  }
  if (report.outcome == drain::Outcome::drained) return exit_done;
  return report.outcome == drain::Outcome::failed && report.connection_failed ? exit_connection : exit_not_done;
}

int exit_code(const std::vector<drain::Report>& reports) {
  int largest = exit_done;
  for (const drain::Report& report : reports) largest = std::max(largest, exit_code(report));
  return largest;
}

int exit_code(const Error& error) {
  switch (error.code()) {
    case Errc::invalid: return exit_usage;
    case Errc::status:
      // A response without a Status object does not come from the API server, so it counts as a failed connection.
      return (error.peer && !error.peer->structured) || error.is_status(401) || error.is_status(403) ? exit_connection
                                                                                                     : exit_not_done;
    case Errc::timeout:
    case Errc::dns:
    case Errc::unreachable:
    case Errc::tls:
    case Errc::reset:
    case Errc::protocol:
    case Errc::decode:
    case Errc::unavailable: return exit_connection;
  }
  return exit_connection;
}

int exit_code_of_service(const Error& error) {
  const int code = exit_code(error);
  return code == exit_usage ? exit_not_done : code;
}

int exit_code_of_signal(int signal) {
  return 128 + signal;
}

}  // namespace haulout::agent
