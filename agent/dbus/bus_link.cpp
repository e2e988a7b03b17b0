#include "agent/dbus/bus_link.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <limits>
#include <system_error>

#include "agent/dbus/bus.hpp"
#include "base/scope_exit.hpp"
#include "retry/deadline.hpp"

namespace haulout::agent {

namespace asio = boost::asio;
namespace {

using Ec = boost::system::error_code;
using Local = asio::local::stream_protocol;

Result<> outcome(const Ec& failure, std::string_view step) {
  if (!failure) return {};
  if (failure == asio::error::operation_aborted) throw boost::system::system_error(failure);
  std::string way_out;
  if (failure == boost::system::errc::permission_denied) way_out = "; " + container_traps();
  return Error(Errc::unreachable, fmt::format("{}: {}{}", step, failure.message(), way_out));
}

// Runs the "Authentication protocol" of the D-Bus specification. The server takes the user's uid from the socket.
Task<> authenticate(std::string path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path))
    co_return Error(Errc::unreachable,
                    "the path is too long for a unix socket (at most 107 bytes); use a shorter --host-root or "
                    "DBUS_SYSTEM_BUS_ADDRESS");
  Local::socket socket(co_await asio::this_coro::executor);
  auto [refused] = co_await socket.async_connect(Local::endpoint(path), asio::as_tuple(asio::use_awaitable));
  CO_CHECK(outcome(refused, "connect"));
  const std::string hello("\0AUTH EXTERNAL\r\nDATA\r\n", 22);
  auto [unsent, sent] = co_await asio::async_write(socket, asio::buffer(hello), asio::as_tuple(asio::use_awaitable));
  CO_CHECK(outcome(unsent, "authenticate"));
  std::string answer;
  while (true) {
    auto [unread, size] = co_await asio::async_read_until(socket, asio::dynamic_buffer(answer, 4096), "\r\n",
                                                          asio::as_tuple(asio::use_awaitable));
    CO_CHECK(outcome(unread, "authenticate"));
    if (answer.starts_with("OK")) co_return Result<>();
    if (!answer.starts_with("DATA"))
      co_return Error(Errc::unreachable,
                      fmt::format("authentication: the bus does not accept this process as uid {}; {}", ::geteuid(),
                                  container_traps()));
    answer.erase(0, size);
  }
}

}  // namespace

Task<> probe_bus(Clock& clock, std::string socket_path, TimePoint deadline) {
  auto probed = co_await with_deadline(clock, deadline, authenticate(socket_path));
  if (probed) co_return probed;
  if (probed.error().code() == Errc::timeout)
    co_return Error(Errc::unreachable,
                    socket_path + ": the socket exists, but no program answers on it; is dbus.service running?");
  co_return std::move(probed).error().with_context(socket_path);
}

namespace {

// Limit for the calls to the bus daemon during which the library blocks the thread: it adds match rules synchronously.
constexpr std::chrono::seconds in_place_limit{5};
// Number of messages that the pump handles before it lets other work of the io_context run.
constexpr int messages_per_turn = 64;

Error no_link(const std::string& address, const std::string& cause, bool denied) {
  return Error(Errc::unreachable, fmt::format("{}: {}{}", address, cause, denied ? "; " + container_traps() : ""));
}

}  // namespace

Result<std::shared_ptr<BusLink>> BusLink::open(asio::any_io_executor executor, const std::string& address) {
  try {
    auto connection = sdbus::createSessionBusConnectionWithAddress(address);
    connection->setMethodCallTimeout(in_place_limit);
    return std::make_shared<BusLink>(std::move(executor), std::move(connection));
  } catch (const sdbus::Error& failure) {
    const bool denied = failure.getName() == bus_error::access_denied || failure.getName() == bus_error::auth_failed;
    return no_link(address, failure.getMessage(), denied);
  } catch (const std::system_error& failure) {
    return no_link(address, failure.what(), false);
  }
}

BusLink::BusLink(asio::any_io_executor executor, std::unique_ptr<sdbus::IConnection> connection)
    : connection_(std::move(connection)),
      unique_name_(connection_->getUniqueName()),
      descriptor_(executor),
      wake_(executor) {
  const int own = ::fcntl(connection_->getEventLoopPollData().fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) throw std::system_error(errno, std::generic_category(), "duplicate the socket");
  boost::system::error_code refused;
  descriptor_.assign(own, refused);
  if (!refused) return;
  ::close(own);
  throw std::system_error(refused.value(), std::generic_category(), "watch the socket");
}

void BusLink::fail(std::string why) {
  if (failed_.empty()) failed_ = why.empty() ? "closed" : std::move(why);
  wake_.notify();
}

void BusLink::listen(const void* owner, const std::vector<std::string>& matches,
                     sdbus_versions::MessageHandler handler) {
  try {
    for (const std::string& match : matches)
      slots_[owner].push_back(sdbus_versions::add_match(*connection_, match, handler));
  } catch (const sdbus::Error& failure) {
    fail("subscribing to its signals failed: " + failure.getMessage());
  }
  nudge();  // while it waited for the bus, the library may have read messages that no event of the descriptor announces
}

void BusLink::forget(const void* owner) {
  slots_.erase(owner);
  nudge();
}

void BusLink::watch(asio::posix::stream_descriptor::wait_type type, bool& armed) {
  if (armed) return;
  armed = true;
  descriptor_.async_wait(type, [self = shared_from_this(), &armed](const boost::system::error_code& failure) {
    armed = false;
    if (failure != asio::error::operation_aborted) self->wake_.notify();
  });
}

TimePoint BusLink::dispatch(Clock& clock) {
  try {
    for (int handled = 0; sdbus_versions::process_pending(*connection_);)
      if (++handled == messages_per_turn) return clock.now();
    const auto poll = connection_->getEventLoopPollData();
    if ((poll.events & POLLIN) != 0) watch(asio::posix::stream_descriptor::wait_read, reading_);
    if ((poll.events & POLLOUT) != 0) watch(asio::posix::stream_descriptor::wait_write, writing_);
    const std::uint64_t timeout = sdbus_versions::timeout_of(poll);
    // `timeout` is an absolute time of CLOCK_MONOTONIC in microseconds, which is also the clock of TimePoint. The
    // largest value means never.
    if (timeout >= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 1000) return TimePoint::max();
    return TimePoint(std::chrono::microseconds(timeout));
  } catch (const sdbus::Error& failure) {
    if (failed_.empty()) failed_ = "the connection was lost: " + failure.getMessage();
    return clock.now();
  }
}

asio::awaitable<std::string> BusLink::pump(Clock& clock) {
  // Keeps this object alive while the pump runs. Pending waits keep it alive, too: closing the descriptor, when the
  // pump ends, ends them.
  const auto self = shared_from_this();
  const ScopeExit close([this] { descriptor_.close(); });
  while (true) {
    const TimePoint until = failed_.empty() ? dispatch(clock) : clock.now();
    if (!failed_.empty()) co_return failed_;
    co_await wake_.wait_until(clock, until);
  }
}

}  // namespace haulout::agent
