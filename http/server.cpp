#include "http/server.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <map>

#include "base/scope_exit.hpp"
#include "http/buffer.hpp"
#include "http/parser.hpp"
#include "http/wire.hpp"
#include "retry/deadline.hpp"
#include "retry/task_group.hpp"

namespace haulout::http {
namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using Ec = boost::system::error_code;

namespace {

constexpr Duration handshake_timeout = std::chrono::seconds(10);  // limit of a TLS handshake; as in the client
constexpr Duration out_of_descriptors_pause = std::chrono::milliseconds(100);  // pause before accept() is tried again
constexpr Duration linger = std::chrono::seconds(1);  // time for the peer to close after a last response

std::string head_bytes(int status, const Headers& headers, std::string_view framing) {
  std::string bytes = fmt::format("HTTP/1.1 {} {}\r\n", status, status < 400 ? "OK" : "Error");
  for (const auto& [name, value] : headers.fields())
    fmt::format_to(std::back_inserter(bytes), "{}: {}\r\n", name, value);
  bytes += framing;
  bytes += "\r\n";
  return bytes;
}

bool has_no_body(int status) {
  return status == 204 || status == 304;
}

Task<> write_all(Wire& wire, std::string_view bytes, std::string_view peer) {
  const auto failure = co_await wire.write(bytes);
  if (failure) co_return lost_connection(std::string(peer), "while it was being answered", failure);
  co_return Result<>();
}

Task<std::size_t> read_into(Wire& wire, std::span<char> room) {
  const auto [failure, bytes] = co_await wire.read_some(room);
  if (failure) co_return Error(Errc::reset, failure.message());
  co_return bytes;
}

// The state of one open connection.
struct Guest {
  TaskGroup::ChildId child = 0;
  TimePoint waited_for_since = TimePoint::max();  // start of the wait for the peer; max() if there is none
};

// Marks, for as long as this object exists, that the server waits for the peer of the connection `guest`.
class Waiting {
 public:
  Waiting(Guest& guest, const Clock& clock)
      : guest_(guest), before_(std::exchange(guest.waited_for_since, std::min(guest.waited_for_since, clock.now()))) {}
  ~Waiting() { guest_.waited_for_since = before_; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  Guest& guest_;
  TimePoint before_;
};

using Guests = std::map<std::uint64_t, Guest>;  // key: number of the connection, in order of arrival

class ServerExchange final : public Exchange {
 public:
  // Borrows `clock`, `guest` and `wire`. `patience` is how long the peer may take to accept each part of the response.
  ServerExchange(Clock& clock, Duration patience, Guest& guest, Wire& wire, std::string peer, Request request,
                 bool keep_alive)
      : clock_(clock),
        patience_(patience),
        guest_(guest),
        wire_(wire),
        peer_(std::move(peer)),
        request_(std::move(request)),
        keep_alive_(keep_alive) {}

  const Request& request() const override { return request_; }

  Task<> reply(Response response) override {
    const std::string framing =
        has_no_body(response.status) ? "" : fmt::format("Content-Length: {}\r\n", response.body.size());
    answered_ = true;
    std::string bytes = head_bytes(response.status, response.headers, framing + connection());
    if (!has_no_body(response.status)) bytes += response.body;
    co_return co_await send(std::move(bytes));
  }

  Task<> start_stream(ResponseHead head) override {
    answered_ = streaming_ = true;
    co_return co_await send(head_bytes(head.status, head.headers, "Transfer-Encoding: chunked\r\n" + connection()));
  }

  Task<> write(std::string chunk) override {
    if (chunk.empty()) co_return Result<>();  // an empty chunk would end the stream
    co_return co_await send(fmt::format("{:x}\r\n{}\r\n", chunk.size(), chunk));
  }

  Task<> end() override {
    streaming_ = false;
    co_return co_await send("0\r\n\r\n");
  }

  void abort() override {
    broken_ = true;
    wire_.abort();
  }

  // Returns whether the response is complete and both sides allow another request.
  bool reusable() const { return answered_ && !streaming_ && !broken_ && keep_alive_; }
  // Returns whether the response is complete, so that the connection can be closed in an orderly way.
  bool complete() const { return answered_ && !streaming_ && !broken_; }

 private:
  std::string connection() const { return keep_alive_ ? "" : "Connection: close\r\n"; }

  Task<> send(std::string bytes) {
    if (broken_) co_return Error(Errc::reset, "the connection to " + peer_ + " was aborted");
    const Waiting waiting(guest_, clock_);
    auto sent = co_await with_deadline(clock_, saturating_add(clock_.now(), patience_), write_all(wire_, bytes, peer_));
    if (!sent) broken_ = true;
    co_return sent;
  }

  Clock& clock_;
  Duration patience_;
  Guest& guest_;
  Wire& wire_;
  std::string peer_;
  Request request_;
  bool keep_alive_;
  bool answered_ = false;
  bool streaming_ = false;
  bool broken_ = false;
};

}  // namespace

class Server::Impl {
 public:
  Impl(asio::any_io_executor executor, Clock& clock, ServerOptions options, Handler handler)
      : acceptor_(executor), clock_(clock), options_(std::move(options)), handler_(std::move(handler)) {}

  Result<> listen();
  std::uint16_t port() const { return port_; }
  asio::awaitable<void> run();

 private:
  asio::awaitable<void> accept_into(TaskGroup& group);
  // Cancels the connection for which the server has waited longest. Returns false if it waits for none.
  bool make_room(TaskGroup& group);
  asio::awaitable<void> serve(tcp::socket socket, std::string peer, std::uint64_t number);
  asio::awaitable<void> serve_requests(Guest& guest, Wire& wire, std::string peer);
  // Reads the next request. Returns null if the connection is to be closed: the peer has closed it or sends too slowly,
  // or the request is invalid and a response with the error has been sent.
  asio::awaitable<std::unique_ptr<RequestParser>> next_request(Guest& guest, Wire& wire, Buffer& buffer);
  asio::awaitable<void> say_goodbye(Guest& guest, Wire& wire);

  tcp::acceptor acceptor_;
  Clock& clock_;
  ServerOptions options_;
  Handler handler_;
  std::shared_ptr<TlsContext> tls_;
  std::uint16_t port_ = 0;
  Guests guests_;
  Guests leaving_;  // connections that were cancelled and are about to end
  std::uint64_t came_ = 0;
};

Result<> Server::Impl::listen() {
  if (options_.tls) {
    auto context = TlsContext::for_server(options_.tls_options);
    if (!context) return std::move(context).error();
    tls_ = *std::move(context);
  }
  Ec failure;
  const tcp::endpoint address(asio::ip::make_address(options_.address, failure), options_.port);
  if (!failure) acceptor_.open(address.protocol(), failure);
  if (!failure) acceptor_.set_option(asio::socket_base::reuse_address(true), failure);
  if (!failure) acceptor_.bind(address, failure);
  if (!failure) acceptor_.listen(asio::socket_base::max_listen_connections, failure);
  if (failure) {
    return Error(Errc::unavailable,
                 fmt::format("cannot listen on {}:{}: {}", options_.address, options_.port, failure.message()));
  }
  port_ = acceptor_.local_endpoint().port();
  return {};
}

asio::awaitable<void> Server::Impl::run() {
  co_await with_task_group([this](TaskGroup& group) { return accept_into(group); });
}

asio::awaitable<void> Server::Impl::accept_into(TaskGroup& group) {
  while (true) {
    auto [failure, socket] = co_await acceptor_.async_accept(asio::as_tuple(asio::use_awaitable));
    unwind_if_cancelled(failure);
    if (failure) {
      // The process most likely has no free file descriptors. Connections that end will release some, so try again
      // after a pause.
      co_await clock_.sleep_until(clock_.now() + out_of_descriptors_pause);
      continue;
    }
    if (guests_.size() >= options_.max_connections && !make_room(group)) continue;
    Ec gone;
    socket.set_option(tcp::no_delay(true), gone);
    const auto remote = socket.remote_endpoint(gone);
    std::string peer = gone ? "a peer" : fmt::format("{}:{}", remote.address().to_string(), remote.port());
    const std::uint64_t number = ++came_;
    guests_.try_emplace(number);
    const auto child = group.spawn(serve(std::move(socket), std::move(peer), number));
    if (const auto guest = guests_.find(number); guest != guests_.end()) guest->second.child = child;
  }
}

bool Server::Impl::make_room(TaskGroup& group) {
  const auto longest = std::min_element(guests_.begin(), guests_.end(), [](const auto& one, const auto& other) {
    return one.second.waited_for_since < other.second.waited_for_since;
  });
  if (longest == guests_.end() || longest->second.waited_for_since == TimePoint::max()) return false;
  group.cancel(longest->second.child);
  leaving_.insert(guests_.extract(longest));  // extract() does not move the Guest, so references to it stay valid
  return true;
}

asio::awaitable<void> Server::Impl::serve(tcp::socket socket, std::string peer, std::uint64_t number) {
  const ScopeExit forget_guest([this, number] {
    guests_.erase(number);
    leaving_.erase(number);
  });
  Guest& guest = guests_.at(number);
  std::unique_ptr<Wire> wire;
  if (tls_) {
    const Waiting waiting(guest, clock_);
    auto accepted = co_await with_deadline(clock_, saturating_add(clock_.now(), handshake_timeout),
                                           tls_server_wire(std::move(socket), tls_, peer));
    if (!accepted) co_return;  // the client reports the cause
    wire = *std::move(accepted);
  } else {
    wire = plain_wire(std::move(socket));
  }
  co_await serve_requests(guest, *wire, std::move(peer));
}

asio::awaitable<void> Server::Impl::serve_requests(Guest& guest, Wire& wire, std::string peer) {
  Buffer buffer(options_.head_limit);
  while (true) {
    const auto parser = co_await next_request(guest, wire, buffer);
    if (!parser) co_return;
    ServerExchange exchange(clock_, options_.send_timeout, guest, wire, peer, std::move(parser->request()),
                            parser->keep_alive());
    co_await handler_(exchange);
    if (exchange.reusable()) continue;
    if (exchange.complete()) co_await say_goodbye(guest, wire);
    co_return;
  }
}

asio::awaitable<std::unique_ptr<RequestParser>> Server::Impl::next_request(Guest& guest, Wire& wire, Buffer& buffer) {
  const Waiting waiting(guest, clock_);
  auto parser = std::make_unique<RequestParser>(Limits{options_.head_limit, options_.body_limit});
  bool idle = buffer.view().empty();
  TimePoint until = saturating_add(clock_.now(), idle ? options_.idle_timeout : options_.request_timeout);
  bool continued = false;
  while (true) {
    auto used = parser->put(buffer.view());
    const auto room = used ? (buffer.consume(*used), buffer.prepare()) : std::span<char>();
    if (used && parser->done()) co_return parser;
    if (room.empty()) {
      const int status = parser->too_large() ? 413 : used ? 431 : 400;
      ServerExchange refusal(clock_, options_.send_timeout, guest, wire, "", {}, false);
      Response response{
          status, {}, used ? "the HTTP headers of the request are too long\n" : used.error().message() + "\n"};
      response.headers.add("Content-Type", "text/plain; charset=utf-8");
      if (co_await refusal.reply(std::move(response))) co_await say_goodbye(guest, wire);
      co_return nullptr;
    }
    if (parser->head_done() && !continued) {
      continued = true;
      if (parser->request().headers.find("Expect") == std::string_view("100-continue")) {
        const auto sent = co_await with_deadline(clock_, until, write_all(wire, "HTTP/1.1 100 Continue\r\n\r\n", ""));
        if (!sent) co_return nullptr;
      }
    }
    const auto bytes = co_await with_deadline(clock_, until, read_into(wire, room));
    // Enforces the deadline even if every read returns at once, because the peer sends a little all the time.
    if (!bytes || clock_.now() >= until) co_return nullptr;
    if (std::exchange(idle, false)) until = saturating_add(clock_.now(), options_.request_timeout);
    buffer.commit(*bytes);
  }
}

namespace {

// Reads and discards input until the peer closes. Closing with unread bytes would send a reset, and the peer could
// receive it before the response.
Task<> read_to_the_end(Wire& wire) {
  std::array<char, 4096> rest;
  while (true) {
    const auto [failure, bytes] = co_await wire.read_some(rest);
    if (failure) co_return Result<>();
  }
}

}  // namespace

asio::awaitable<void> Server::Impl::say_goodbye(Guest& guest, Wire& wire) {
  const Waiting waiting(guest, clock_);
  wire.finish_sending();
  const auto read = co_await with_deadline(clock_, saturating_add(clock_.now(), linger), read_to_the_end(wire));
  static_cast<void>(read);  // the connection is closed next in any case
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::listen(asio::any_io_executor executor, Clock& clock, ServerOptions options,
                                               Handler handler) {
  auto impl = std::make_unique<Impl>(std::move(executor), clock, std::move(options), std::move(handler));
  if (auto listening = impl->listen(); !listening) return std::move(listening).error();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::uint16_t Server::port() const {
  return impl_->port();
}
asio::awaitable<void> Server::run() {
  return impl_->run();
}

}  // namespace haulout::http
