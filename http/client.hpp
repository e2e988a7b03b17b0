// HTTP/1.1 client for one server: TCP, TLS or a unix socket, with a pool of idle connections.
//
// - Every operation has a deadline and can be cancelled, including name resolution. The latter runs on a helper thread,
//   for which the client never waits.
// - TLS 1.2 or newer, ALPN "http/1.1". The client verifies the peer's chain and name (DNS or IP SAN), unless TlsOptions
//   says otherwise.
// - If an idle connection turns out to be dead before any byte of the response, a repeatable request is sent once more
//   on a new connection.
// - A request that gets no response in time closes the connections that were idle when it began. The peer may have
//   become unreachable without closing them.
// - If the name has several addresses, they race (race.hpp), so that a dead address causes little delay. The address
//   that answered last is tried first.
//
// Errors: see Transport. A message names the host and the cause, and also the request if the response is unusable. The
// client follows no redirects and keeps no cookies. Not copyable. Must outlive its operations and streams. One thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "http/proxy.hpp"
#include "http/transport.hpp"

namespace haulout::http {

struct TlsOptions {
  std::string ca_pem;           // CA bundle that verifies the server; empty: the system's store
  std::string client_cert_pem;  // certificate chain; empty: the client offers none
  std::string client_key_pem;
  std::string server_name;  // SNI and name to verify; empty: the host of the endpoint
  bool verify = true;
  bool operator==(const TlsOptions&) const = default;
};

struct Endpoint {
  enum class Kind { tcp, tls, unix_socket } kind = Kind::tls;
  std::string host;  // name or address, IPv6 without brackets; for unix_socket the path
  std::uint16_t port = 443;
  std::string authority() const;  // the value of the Host header
};

// Accepts "https://host:port[/prefix]", "http://…" or "unix:/path". Writes the path prefix without its final slash to
// *prefix, which may be null. Errc::invalid.
Result<Endpoint> parse_endpoint(std::string_view url, std::string* prefix);

struct ClientOptions {
  std::size_t header_limit = std::size_t{64} * 1024;      // limit of a response head, in bytes
  std::size_t body_limit = std::size_t{4} * 1024 * 1024;  // limit of a whole body, in bytes; streams have none
  // Limit for the bodies of all responses that are being read at the same time, in bytes. Streams do not count, because
  // their reader takes the bytes as they arrive. Only the response that exceeds the limit fails.
  std::size_t bodies_limit = std::size_t{8} * 1024 * 1024;
  std::size_t max_idle = 16;  // idle connections kept
  // kube-apiserver closes an idle connection 90 s after its last response. The client closes it earlier.
  Duration idle_timeout = std::chrono::seconds(80);
  Duration connect_timeout = std::chrono::seconds(5);  // for each address
  // Time after which the next address is tried as well. As in Go (net.Dialer.FallbackDelay); RFC 8305 (5) has 250 ms.
  Duration next_address_after = std::chrono::milliseconds(300);
  Duration handshake_timeout = std::chrono::seconds(10);  // also the limit of the handshake with a proxy
  std::optional<Proxy> proxy;                             // used for all connections except unix sockets
};

class Client final : public Transport {
 public:
  // Errc::tls if the PEM data cannot be parsed or if key and certificate do not match. Has no other errors. Borrows
  // `clock`.
  static Result<std::unique_ptr<Client>> create(boost::asio::any_io_executor executor, Clock& clock, Endpoint endpoint,
                                                TlsOptions tls, ClientOptions options = {});
  ~Client() override;

  Task<Response> round_trip(Request request, TimePoint deadline) override;
  Task<std::unique_ptr<BodyStream>> open(Request request, TimePoint deadline) override;

  // Sets a new credential or CA. New connections use it. Idle connections are closed. Open streams are not affected.
  Result<> set_tls(TlsOptions tls);
  const Endpoint& endpoint() const;

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Common name of the first certificate in a PEM bundle, from which Kubernetes derives the user name. Empty if there is
// none. Pure.
std::string certificate_common_name(const std::string& pem);

}  // namespace haulout::http
