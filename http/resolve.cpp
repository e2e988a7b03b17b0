#include "http/resolve.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <cstring>
#include <thread>

#include "http/wire.hpp"

namespace haulout::http {
namespace asio = boost::asio;
namespace {

constexpr std::size_t most_addresses = 16;

// The result of a look-up as the helper thread sends it, in one message. The message stays in the socket, so that every
// caller can read it.
struct Answer {
  int failure = 0;  // 0 or the error code of getaddrinfo (EAI_…)
  std::uint32_t count = 0;
  struct Address {
    std::uint8_t version = 4;
    std::array<unsigned char, 16> bytes{};
    std::uint32_t scope = 0;
  };
  std::array<Address, most_addresses> addresses;
};

Answer message_of(const HostAddresses& found) {
  Answer answer;
  answer.failure = found.failure;
  for (const asio::ip::address& one : found.addresses) {
    if (answer.count == most_addresses) break;
    Answer::Address& address = answer.addresses[answer.count++];
    if (one.is_v6()) {
      address.version = 6;
      address.scope = static_cast<std::uint32_t>(one.to_v6().scope_id());
      address.bytes = one.to_v6().to_bytes();
    } else {
      const auto bytes = one.to_v4().to_bytes();
      std::copy(bytes.begin(), bytes.end(), address.bytes.begin());
    }
  }
  return answer;
}

std::vector<asio::ip::address> addresses_in(const Answer& answer) {
  std::vector<asio::ip::address> out;
  for (std::uint32_t i = 0; i < answer.count; ++i) {
    const Answer::Address& one = answer.addresses.at(i);
    if (one.version == 6) {
      out.emplace_back(asio::ip::address_v6(one.bytes, one.scope));
    } else {
      asio::ip::address_v4::bytes_type bytes{};
      std::copy_n(one.bytes.begin(), bytes.size(), bytes.begin());
      out.emplace_back(asio::ip::address_v4(bytes));
    }
  }
  return out;
}

HostAddresses ask_system(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  HostAddresses out;
  out.failure = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (out.failure != 0) return out;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET) {
      sockaddr_in v4{};
      std::memcpy(&v4, one->ai_addr, sizeof v4);
      out.addresses.emplace_back(asio::ip::address_v4(ntohl(v4.sin_addr.s_addr)));
    } else if (one->ai_family == AF_INET6) {
      sockaddr_in6 v6{};
      std::memcpy(&v6, one->ai_addr, sizeof v6);
      asio::ip::address_v6::bytes_type bytes{};
      std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
      out.addresses.emplace_back(asio::ip::address_v6(bytes, v6.sin6_scope_id));
    }
  }
  ::freeaddrinfo(found);
  return out;
}

// Starts a detached thread that runs `work`. Returns why the system cannot start another thread; empty on success.
template <class Work>
std::string start_helper(Work work) {
  // The helper thread blocks all signals, so that they reach the thread that waits for them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::string failure;
  try {
    std::thread(std::move(work)).detach();
  } catch (const std::system_error& error) {
    failure = error.code().message();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return failure;
}

std::string reason(int failure) {
  return std::generic_category().message(failure);
}

bool is_readable(const Descriptor& fd) {
  pollfd one{fd.get(), POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

// Waits until `fd` is readable. Waits on a duplicate of it, because several callers may wait for the same `fd` at a
// time. Fails with Errc::dns. Cancellable.
Task<> readable(const Descriptor& fd) {
  const int copy = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) co_return Error(Errc::dns, fmt::format("a host name could not be looked up ({})", reason(errno)));
  asio::posix::stream_descriptor own(co_await asio::this_coro::executor, copy);
  auto [failure] =
      co_await own.async_wait(asio::posix::stream_descriptor::wait_read, asio::as_tuple(asio::use_awaitable));
  unwind_if_cancelled(failure);
  if (failure) co_return Error(Errc::dns, fmt::format("a host name could not be looked up ({})", failure.message()));
  co_return Result<>();
}

void give_back(const Descriptor& place) {
  // Cannot fail, because the pipe has space for the bytes of all helper threads.
  static_cast<void>(!::write(place.get(), "", 1));
}

Error no_address(const std::string& host, int failure) {
  switch (failure) {
    case EAI_NONAME:
      return Error(Errc::dns,
                   fmt::format("the name servers of this machine do not know host {}; check the name", host));
    case EAI_NODATA: return Error(Errc::dns, fmt::format("host {} has no IP address; check its DNS record", host));
    case EAI_AGAIN:
      return Error(Errc::dns, fmt::format("no name server gave a usable answer for host {}; check this machine's name "
                                          "servers",
                                          host));
    default:
      return Error(Errc::dns, fmt::format("host {} could not be looked up ({}); check this machine's name servers",
                                          host, ::gai_strerror(failure)));
  }
}

Error no_helper(const std::string& host, std::string_view why) {
  return Error(Errc::dns, fmt::format("host {} could not be looked up ({})", host, why));
}

}  // namespace

LookUps::LookUps(std::size_t most, LookUp look_up) : look_up_(std::move(look_up)) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;  // without the pipe addresses_of() fails
  places_ = std::make_shared<const Places>(Descriptor(ends[0]), Descriptor(ends[1]));
  for (std::size_t i = 0; i < most; ++i) give_back(places_->give_back_to);
}

// Forgets the look-ups that have ended. Callers that still wait for their results have descriptors of their own. A
// later caller with the same name starts another look-up.
void LookUps::forget_answered() {
  std::erase_if(running_, [](const auto& one) { return is_readable(one.second); });
}

Result<> LookUps::start(const std::string& host) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return no_helper(host, reason(errno));
  Descriptor ours(ends[0]);
  const auto theirs = std::make_shared<const Descriptor>(ends[1]);
  const std::string failure = start_helper([host, look_up = look_up_, places = places_, theirs] {
    const Answer answer = message_of(look_up(host));
    give_back(places->give_back_to);
    // All callers may have been cancelled. Then the send fails, which does no harm.
    ::send(theirs->get(), &answer, sizeof answer, MSG_NOSIGNAL);
  });
  if (!failure.empty())
    return no_helper(
        host,
        fmt::format(
            "no thread can be started: {}; check the limits of tasks and memory, for example TasksMax= or pids.max",
            failure));
  running_.insert_or_assign(host, std::move(ours));
  return {};
}

Task<std::vector<asio::ip::address>> LookUps::addresses_of(std::string host) {
  if (!places_)
    co_return no_helper(
        host,
        "Haulout could not open a pipe; raise its limit of open files (LimitNOFILE= or ulimit -n), and restart it");
  for (;;) {
    forget_answered();
    if (running_.contains(host)) break;
    char place = 0;
    if (::read(places_->take_from.get(), &place, 1) == 1) {
      if (auto started = start(host); !started) {
        give_back(places_->give_back_to);
        co_return std::move(started).error();
      }
      break;
    }
    CO_CHECK(co_await readable(places_->take_from));
  }
  const Descriptor socket(::fcntl(running_.at(host).get(), F_DUPFD_CLOEXEC, 0));
  CO_CHECK(co_await readable(socket));
  Answer answer;
  const ssize_t bytes = ::recv(socket.get(), &answer, sizeof answer, MSG_PEEK | MSG_DONTWAIT);
  if (bytes != sizeof answer) co_return no_helper(host, bytes < 0 ? reason(errno) : "its helper thread has ended");
  if (answer.failure != 0) co_return no_address(host, answer.failure);
  auto addresses = addresses_in(answer);
  if (addresses.empty()) co_return no_address(host, EAI_NODATA);
  co_return addresses;
}

Task<std::vector<asio::ip::address>> resolve(std::string host) {
  boost::system::error_code not_literal;
  const auto literal = asio::ip::make_address(host, not_literal);
  if (!not_literal) co_return std::vector<asio::ip::address>{literal};
  static LookUps look_ups(most_look_ups, ask_system);
  co_return co_await look_ups.addresses_of(std::move(host));
}

}  // namespace haulout::http
