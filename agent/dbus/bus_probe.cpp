#include "agent/dbus/bus_probe.hpp"

#include <fmt/format.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "agent/dbus/bus_error.hpp"
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

// The "Authentication protocol" of the D-Bus specification. The server takes the user's uid from the socket.
Task<> authenticate(std::string path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path))
    co_return Error(Errc::unreachable, "the path is too long for a unix socket");
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

}  // namespace haulout::agent
