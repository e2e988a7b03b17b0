// HTTP/1.1 client for one server: TCP, TLS or a unix socket, with a pool of idle connections.
//
// - Every operation has a deadline and can be cancelled, also while it resolves a name. Names are resolved on a helper
//   thread. After a cancellation or a deadline, the client does not wait for that thread.
// - TLS 1.2 or newer, ALPN "http/1.1". The client verifies the peer's chain and name (DNS or IP SAN), unless TlsOptions
//   says otherwise.
// - If an idle connection from the pool is lost before any byte of the response has arrived, the client sends a
//   repeatable request once more, on a new connection.
// - If a request gets no response before its deadline, the client closes the connections that were idle when the
//   request began. The peer may have become unreachable without closing them.
// - If the name has several addresses, the client tries them with staggered starts and uses the first one that connects
//   (dial.hpp), so that a dead address causes little delay. The address that last sent a response is tried first.
//
// Fails with the errors of Transport. The error message names the host and the cause, and also the request if the
// response is unusable. The client follows no redirects and keeps no cookies. It must outlive its operations and
// streams. Not copyable. For use from one thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "http/endpoint.hpp"
#include "http/transport.hpp"

namespace haulout::http {

struct TlsOptions {
  std::string ca_pem;           // CA bundle that verifies the server; empty: the system's store
  std::string client_cert_pem;  // certificate chain; empty: the client sends none
  std::string client_key_pem;
  std::string server_name;  // SNI and name to verify; empty: the host of the endpoint
  bool verify = true;
  bool operator==(const TlsOptions&) const = default;
};

struct ClientOptions {
  std::size_t header_limit = std::size_t{64} * 1024;      // limit of a response head, in bytes
  std::size_t body_limit = std::size_t{4} * 1024 * 1024;  // limit of a whole body, in bytes; streams have none
  // Limit for the bodies of all responses that are being read at the same time, in bytes. Streams do not count, because
  // their reader takes the bytes as they arrive. Only the response that exceeds the limit fails.
  std::size_t bodies_limit = std::size_t{8} * 1024 * 1024;
  std::size_t max_idle = 16;  // limit for the number of idle connections in the pool
  // The client closes a connection that has been idle this long. kube-apiserver closes it 90 s after its last response.
  Duration idle_timeout = std::chrono::seconds(80);
  Duration connect_timeout = std::chrono::seconds(5);  // limit for connecting to one address
  // Time after which the next address is tried as well. The value is that of Go (net.Dialer.FallbackDelay); RFC 8305
  // (5) has 250 ms.
  Duration next_address_after = std::chrono::milliseconds(300);
  Duration handshake_timeout = std::chrono::seconds(10);  // limit of the TLS handshake, and of that with a proxy
  std::optional<Proxy> proxy;                             // used for all connections except unix sockets
};

class Client final : public Transport {
 public:
  // Creates a client without connecting it. Fails with Errc::tls if the PEM data cannot be parsed or if key and
  // certificate do not match, and with no other error. Borrows `clock`.
  static Result<std::unique_ptr<Client>> create(boost::asio::any_io_executor executor, Clock& clock, Endpoint endpoint,
                                                TlsOptions tls, ClientOptions options = {});
  ~Client() override;

  Task<Response> round_trip(Request request, TimePoint deadline) override;
  Task<std::unique_ptr<BodyStream>> open(Request request, TimePoint deadline) override;

  // Sets a new client certificate or CA for new connections. Closes the idle connections; open streams are not
  // affected. Fails as create() does, and then keeps the old ones.
  Result<> set_tls(TlsOptions tls);
  const Endpoint& endpoint() const;

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Returns the common name of the first certificate in a PEM bundle, from which Kubernetes derives the user name.
// Returns an empty string if there is none. Pure.
std::string certificate_common_name(const std::string& pem);

}  // namespace haulout::http
