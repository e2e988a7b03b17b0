// HTTP/1.1 client for one server: TCP, TLS or a unix socket, with a pool of idle connections.
//
// - Every operation has a deadline and can be cancelled, name resolution included: that runs on a helper thread, which
//   is abandoned and never waited for.
// - TLS 1.2 or newer, ALPN "http/1.1". The peer's chain and name (DNS or IP SAN) are verified, unless TlsOptions says
//   otherwise.
// - A request on an idle connection that proves dead before any byte of the answer is sent once more on a new
//   connection, if the request is repeatable.
// - A request that gets no answer in time drops the connections that were idle when it began: the peer may have gone
//   without closing them.
// - If the name has several addresses they race (race.hpp), so that a dead one costs little. The address that answered
//   last is tried first.
//
// Errors: see Transport. A message names the host and the cause; for an answer that cannot be used, the request, too.
// Redirects are not followed, cookies are not kept. Not copyable. Must outlive its operations and streams. One thread.
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
