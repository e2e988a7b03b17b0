#include "http/resolve.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <thread>

#include "http/cancelled.hpp"

namespace haulout::http {
namespace asio = boost::asio;
namespace {

constexpr std::size_t most_addresses = 16;

// The helper thread sends this in one message.
struct Answer {
  int failure = 0;  // 0 or EAI_…
  std::uint32_t count = 0;
  struct Address {
    std::uint8_t version = 4;
    std::array<unsigned char, 16> bytes{};
    std::uint32_t scope = 0;
  };
  std::array<Address, most_addresses> addresses;
};

void add(Answer& answer, const addrinfo& found) {
  Answer::Address address;
  if (found.ai_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, found.ai_addr, sizeof v4);
    std::memcpy(address.bytes.data(), &v4.sin_addr, sizeof v4.sin_addr);
  } else if (found.ai_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, found.ai_addr, sizeof v6);
    address.version = 6;
    address.scope = v6.sin6_scope_id;
    std::memcpy(address.bytes.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
  } else {
    return;
  }
  answer.addresses[answer.count++] = address;
}

void look_up(const std::string& host, int reply_to) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  Answer answer;
  answer.failure = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (answer.failure == 0) {
    for (const addrinfo* one = found; one != nullptr && answer.count < most_addresses; one = one->ai_next)
      add(answer, *one);
    ::freeaddrinfo(found);
  }
  // The caller may have been cancelled. A failed send is then harmless.
  ::send(reply_to, &answer, sizeof answer, MSG_NOSIGNAL);
  ::close(reply_to);
}

bool start_helper(std::string host, int reply_to) {
  // The helper thread blocks all signals, so that they reach the thread that waits for them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = true;
  try {
    std::thread(look_up, std::move(host), reply_to).detach();
  } catch (const std::system_error&) {
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

asio::ip::address address_of(const Answer::Address& found) {
  if (found.version == 6) return asio::ip::address_v6(found.bytes, found.scope);
  asio::ip::address_v4::bytes_type bytes{};
  std::copy_n(found.bytes.begin(), bytes.size(), bytes.begin());
  return asio::ip::address_v4(bytes);
}

Error no_address(const std::string& host, int failure) {
  switch (failure) {
    case EAI_NONAME:
    case EAI_NODATA: return Error(Errc::dns, fmt::format("host {} does not exist", host));
    case EAI_AGAIN: return Error(Errc::dns, fmt::format("no name server answered for host {}", host));
    default: return Error(Errc::dns, fmt::format("host {} has no address ({})", host, ::gai_strerror(failure)));
  }
}

Error no_helper(const std::string& host, std::string_view why) {
  return Error(Errc::dns, fmt::format("host {} could not be looked up ({})", host, why));
}

}  // namespace

Task<std::vector<asio::ip::address>> resolve(std::string host) {
  boost::system::error_code not_literal;
  const auto literal = asio::ip::make_address(host, not_literal);
  if (!not_literal) co_return std::vector<asio::ip::address>{literal};

  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    co_return no_helper(host, boost::system::error_code(errno, boost::system::system_category()).message());
  asio::posix::stream_descriptor ours(co_await asio::this_coro::executor, ends[0]);
  if (!start_helper(host, ends[1])) {
    ::close(ends[1]);
    co_return no_helper(host, "no thread can be started");
  }
  Answer answer;
  auto [failure, bytes] =
      co_await ours.async_read_some(asio::buffer(&answer, sizeof answer), asio::as_tuple(asio::use_awaitable));
  unwind_if_cancelled(failure);
  if (failure || bytes != sizeof answer) co_return no_helper(host, failure.message());
  if (answer.failure != 0) co_return no_address(host, answer.failure);
  std::vector<asio::ip::address> addresses;
  addresses.reserve(answer.count);
  for (std::size_t i = 0; i < answer.count; ++i) addresses.push_back(address_of(answer.addresses.at(i)));
  if (addresses.empty()) co_return no_address(host, EAI_NODATA);
  co_return addresses;
}

}  // namespace haulout::http
