// The only file that uses Asio's TLS stream.
#include "http/wire.hpp"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace haulout::http {
namespace asio = boost::asio;
namespace {

using Ec = boost::system::error_code;
using tcp = asio::ip::tcp;
constexpr auto as_values = asio::as_tuple(asio::use_awaitable);

template <class Stream>
asio::awaitable<Wire::Outcome> read_from(Stream& stream, std::span<char> into) {
  auto [failure, bytes] = co_await stream.async_read_some(asio::buffer(into.data(), into.size()), as_values);
  unwind_if_cancelled(failure);
  co_return Wire::Outcome{failure, bytes};
}

template <class Stream>
asio::awaitable<Ec> write_to(Stream& stream, std::string_view bytes) {
  auto [failure, written] = co_await asio::async_write(stream, asio::buffer(bytes.data(), bytes.size()), as_values);
  unwind_if_cancelled(failure);
  co_return failure;
}

// Returns whether neither bytes nor the end of the stream can be read.
bool nothing_to_read(int descriptor) {
  char byte = 0;
  return ::recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

// Sets SO_RCVLOWAT. If that many bytes have already arrived, Linux notifies epoll at once.
template <class Socket>
void set_low_watermark(Socket& socket, int bytes) {
  Ec ignored;
  socket.set_option(asio::socket_base::receive_low_watermark(bytes), ignored);
}

template <class Socket>
void reset(Socket& socket) {
  Ec ignored;
  socket.set_option(asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
}

// Returns whether a server may use the current certificate of the chain, by the rule of Go: its extended key usage is
// absent, or names serverAuth or any. OpenSSL would also accept the Netscape and Microsoft usages.
bool is_for_servers(X509_STORE_CTX* store) {
  // OpenSSL sets all bits of the usage if the certificate has no extended key usage.
  const auto usage = X509_get_extended_key_usage(X509_STORE_CTX_get_current_cert(store));
  if ((usage & (XKU_SSL_SERVER | XKU_ANYEKU)) != 0) return true;
  X509_STORE_CTX_set_error(store, X509_V_ERR_INVALID_PURPOSE);
  return false;
}

template <class Socket>
class PlainWire final : public Wire {
 public:
  explicit PlainWire(Socket socket) : socket_(std::move(socket)) {}
  asio::awaitable<Outcome> read_some(std::span<char> into) override { return read_from(socket_, into); }
  asio::awaitable<Ec> write(std::string_view bytes) override { return write_to(socket_, bytes); }
  void wake_from(int bytes) override { set_low_watermark(socket_, bytes); }
  bool quiet() override { return socket_.is_open() && nothing_to_read(socket_.native_handle()); }
  void finish_sending() override {
    Ec ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
  }
  void abort() override { reset(socket_); }

 private:
  Socket socket_;
};

class TlsWire final : public Wire {
 public:
  // The stream owns a reference to OpenSSL's context. The wire also keeps `context` alive, because it stores the last
  // session.
  TlsWire(tcp::socket socket, std::shared_ptr<TlsContext> context)
      : context_(std::move(context)), shared_(borrow(*context_)), stream_(std::move(socket), shared_) {
    Ec ignored;
    stream_.lowest_layer().non_blocking(true, ignored);  // so that take_along() does not block
    // Asio makes OpenSSL release its buffers after each record. This is switched off: these connections receive record
    // after record, hundreds per second on a large node, and keeping 34 KB for each of a dozen connections costs less
    // than allocating that often.
    SSL_clear_mode(ssl(), SSL_MODE_RELEASE_BUFFERS);
  }
  ~TlsWire() override {
    // Tells OpenSSL that both sides have closed the connection. Otherwise it would mark the session as not resumable,
    // because no close_notify was exchanged.
    SSL_set_shutdown(ssl(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  }

  Task<> connect(std::string host, std::string peer);
  Task<> accept(std::string peer);

  asio::awaitable<Outcome> read_some(std::span<char> into) override {
    auto outcome = co_await read_from(stream_, into);
    if (!outcome.failure) outcome.bytes += take_along(into.subspan(outcome.bytes));
    co_return outcome;
  }
  asio::awaitable<Ec> write(std::string_view bytes) override { return write_to(stream_, bytes); }
  void wake_from(int bytes) override { set_low_watermark(stream_.lowest_layer(), bytes); }
  bool quiet() override {
    return stream_.lowest_layer().is_open() && !anything_held() &&
           nothing_to_read(stream_.lowest_layer().native_handle());
  }
  void finish_sending() override {
    Ec ignored;
    stream_.lowest_layer().shutdown(tcp::socket::shutdown_send, ignored);
  }
  void abort() override { reset(stream_.lowest_layer()); }

 private:
  static asio::ssl::context borrow(TlsContext& context) {
    SSL_CTX_up_ref(context.native());
    return asio::ssl::context(context.native());
  }
  SSL* ssl() { return stream_.native_handle(); }
  // Returns whether OpenSSL has received data that has not been read yet: whole records or part of one.
  bool anything_held() { return SSL_has_pending(ssl()) != 0 || BIO_ctrl_pending(SSL_get_rbio(ssl())) != 0; }
  // OpenSSL reads one record at a time. Reads further records that have already arrived, because each would otherwise
  // cost one iteration of the event loop.
  std::size_t take_along(std::span<char> into) {
    std::size_t bytes = 0;
    Ec failure;  // ignored, because the next read returns it again
    while (!failure && bytes < into.size() && anything_held())
      bytes += stream_.read_some(asio::buffer(into.data() + bytes, into.size() - bytes), failure);
    return bytes;
  }
  Result<> prepare_client(const std::string& host);

  std::shared_ptr<TlsContext> context_;
  asio::ssl::context shared_;
  asio::ssl::stream<tcp::socket> stream_;
  CertificateVerdict verdict_;
};

Result<> TlsWire::prepare_client(const std::string& host) {
  Ec not_literal;
  asio::ip::make_address(host, not_literal);
  const bool is_name = static_cast<bool>(not_literal);
  // Only a name is sent as the server name, because RFC 6066 3 forbids addresses.
  if (is_name && SSL_set_tlsext_host_name(ssl(), host.c_str()) != 1)
    return Error(Errc::tls, "\"" + host + "\" cannot be used as a server name");
  if (context_->verifies()) {
    X509_VERIFY_PARAM* parameters = SSL_get0_param(ssl());
    // As in Go, only subject alternative names count, never the common name.
    X509_VERIFY_PARAM_set_hostflags(parameters,
                                    X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    const int accepted = is_name ? X509_VERIFY_PARAM_set1_host(parameters, host.data(), host.size())
                                 : X509_VERIFY_PARAM_set1_ip_asc(parameters, host.c_str());
    if (accepted != 1) return Error(Errc::tls, "\"" + host + "\" is not a name that a certificate can have");
    // OpenSSL's own purpose check is off: for servers it also checks the key usage and does not accept "any".
    // is_for_servers() checks instead. Whether a CA certificate is a CA is checked for every purpose.
    X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_ANY);
    stream_.set_verify_mode(asio::ssl::verify_peer);
    stream_.set_verify_callback([this](bool good, asio::ssl::verify_context& store) {
      good = good && is_for_servers(store.native_handle());
      if (!good) verdict_.note(store.native_handle());
      return good;
    });
  } else {
    stream_.set_verify_mode(asio::ssl::verify_none);
  }
  context_->offer_session(ssl());
  return {};
}

Task<> TlsWire::connect(std::string host, std::string peer) {
  CO_CHECK(prepare_client(host));
  auto [failure] = co_await stream_.async_handshake(asio::ssl::stream_base::client, as_values);
  unwind_if_cancelled(failure);
  if (!failure) co_return Result<>();
  context_->forget_session();
  const HandshakeSubject subject{std::move(peer), std::move(host), context_->has_own_ca(), true};
  co_return handshake_error(subject, verdict_, failure);
}

Task<> TlsWire::accept(std::string peer) {
  if (context_->verifies()) {
    stream_.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
    stream_.set_verify_callback([this](bool good, asio::ssl::verify_context& store) {
      if (!good) verdict_.note(store.native_handle());
      return good;
    });
  }
  auto [failure] = co_await stream_.async_handshake(asio::ssl::stream_base::server, as_values);
  unwind_if_cancelled(failure);
  if (!failure) co_return Result<>();
  if (ERR_GET_REASON(static_cast<unsigned long>(static_cast<unsigned>(failure.value()))) == SSL_R_HTTP_REQUEST) {
    // Responds to plain HTTP as kube-apiserver does.
    co_await write_to(stream_.next_layer(),
                      "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
  }
  const HandshakeSubject subject{std::move(peer), "", context_->has_own_ca(), false};
  co_return handshake_error(subject, verdict_, failure);
}

}  // namespace

std::unique_ptr<Wire> plain_wire(tcp::socket socket) {
  return std::make_unique<PlainWire<tcp::socket>>(std::move(socket));
}

std::unique_ptr<Wire> plain_wire(asio::local::stream_protocol::socket socket) {
  return std::make_unique<PlainWire<asio::local::stream_protocol::socket>>(std::move(socket));
}

Task<std::unique_ptr<Wire>> tls_client_wire(tcp::socket socket, std::shared_ptr<TlsContext> context, std::string host,
                                            std::string peer) {
  auto wire = std::make_unique<TlsWire>(std::move(socket), std::move(context));
  CO_CHECK(co_await wire->connect(std::move(host), std::move(peer)));
  co_return std::unique_ptr<Wire>(std::move(wire));
}

Task<std::unique_ptr<Wire>> tls_server_wire(tcp::socket socket, std::shared_ptr<TlsContext> context, std::string peer) {
  auto wire = std::make_unique<TlsWire>(std::move(socket), std::move(context));
  CO_CHECK(co_await wire->accept(std::move(peer)));
  co_return std::unique_ptr<Wire>(std::move(wire));
}

bool is_orderly_end(const Ec& failure) {
  return failure == boost::asio::error::eof;
}

Error lost_connection(const std::string& peer, std::string_view when, const Ec& failure) {
  if (const std::string alert = refused_by_alert(peer, failure); !alert.empty()) return Error(Errc::tls, alert);
  if (is_orderly_end(failure) || failure == boost::asio::ssl::error::stream_truncated)
    return Error(Errc::reset, fmt::format("{} closed the connection {}", peer, when));
  return Error(Errc::reset, fmt::format("the connection to {} was lost {} ({})", peer, when, failure.message()));
}

}  // namespace haulout::http
