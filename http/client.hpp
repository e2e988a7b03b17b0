// HTTP/1.1 client for one server: TCP, TLS or a unix socket, with a pool of idle connections.
//
// - A deadline and cancellation on every operation, name resolution included (it runs on a helper thread and is
// abandoned,
//   never waited for).
// - TLS 1.2 or newer, ALPN "http/1.1", the peer verified by chain and name (DNS or IP SAN) unless TlsOptions says
// otherwise.
// - A reused connection that proves dead before any byte of the answer is retried once on a fresh one, if the request
// is
//   repeatable.
// - A request without an answer in time drops the connections that were idle when it began: their peer may have gone
//   without a word.
// - Several addresses of one name race (race.hpp): a dead one costs a moment. The one that last answered comes first.
// Errors: see Transport. Messages name host and cause, of an answer that cannot be used the request, too. No redirects,
// no cookies.
// Not copyable; must outlive its operations and streams; one thread.
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
  std::string ca_pem;           // bundle to verify the server with; empty: the system's store
  std::string client_cert_pem;  // chain; empty: none is offered
  std::string client_key_pem;
  std::string server_name;  // SNI and name to verify; empty: the endpoint's host
  bool verify = true;
  bool operator==(const TlsOptions&) const = default;
};

struct Endpoint {
  enum class Kind { tcp, tls, unix_socket } kind = Kind::tls;
  std::string host;  // name or address, IPv6 without brackets; for unix_socket the path
  std::uint16_t port = 443;
  std::string authority() const;  // what goes into the Host header
};

// "https://host:port[/prefix]", "http://…" or "unix:/path". The path prefix, if any, goes to *prefix without a final
// slash.
Result<Endpoint> parse_endpoint(std::string_view url, std::string* prefix);

struct ClientOptions {
  std::size_t header_limit = std::size_t{64} * 1024;      // bytes of a response head
  std::size_t body_limit = std::size_t{4} * 1024 * 1024;  // bytes of a whole body; of a stream's there is none
  // Bytes of the bodies of all answers that are being read at once, streams left out: their reader takes them as they
  // come. The answer that goes beyond it fails, the others do not.
  std::size_t bodies_limit = std::size_t{8} * 1024 * 1024;
  std::size_t max_idle = 16;  // connections kept
  // kube-apiserver closes an idle connection 90 s after its last answer; we leave first.
  Duration idle_timeout = std::chrono::seconds(80);
  Duration connect_timeout = std::chrono::seconds(5);  // per address
  // The next address is tried beside those under way. As Go (net.Dialer.FallbackDelay); RFC 8305 (5) has 250 ms.
  Duration next_address_after = std::chrono::milliseconds(300);
  Duration handshake_timeout = std::chrono::seconds(10);  // with a proxy as much, before that
  std::optional<Proxy> proxy;                             // the way to the endpoint, unless that is a unix socket
};

class Client final : public Transport {
 public:
  // Fails only when the PEM data does not parse or key and certificate do not match (Errc::tls).
  static Result<std::unique_ptr<Client>> create(boost::asio::any_io_executor executor, Clock& clock, Endpoint endpoint,
                                                TlsOptions tls, ClientOptions options = {});
  ~Client() override;

  Task<Response> round_trip(Request request, TimePoint deadline) override;
  Task<std::unique_ptr<BodyStream>> open(Request request, TimePoint deadline) override;

  // New credentials or CA: later connections use them, idle ones are dropped, open streams live on.
  Result<> set_tls(TlsOptions tls);
  const Endpoint& endpoint() const;

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Common name of the first certificate in a PEM bundle: the user name that Kubernetes derives from it. Empty if there
// is none.
std::string certificate_common_name(const std::string& pem);

}  // namespace haulout::http
