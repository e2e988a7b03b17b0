#include "agent/report/status_pages.hpp"

#include <fmt/format.h>

#include <boost/asio/ip/address.hpp>

#include "agent/report/metrics.hpp"
#include "agent/report/open_metrics.hpp"
#include "base/text.hpp"

namespace haulout::agent {
namespace {

// Limits of the server. Any pod can connect. Idle connections must not exhaust the agent's descriptors and memory, and
// must not prevent requests of scrapers and probes. Therefore the server allows 64 connections with a head of 16 KiB
// each. If all are in use, a new connection replaces a silent one.
constexpr std::size_t connections = 64;
constexpr std::size_t head_limit = std::size_t{16} * 1024;
constexpr std::size_t body_limit = 1024;  // no page uses a request body
constexpr Duration idle_timeout = std::chrono::seconds(10);
constexpr Duration request_timeout = std::chrono::seconds(10);
constexpr Duration send_timeout = std::chrono::seconds(10);

http::Response plain(int status, std::string body) {
  http::Response response;
  response.status = status;
  response.headers.set("Content-Type", "text/plain; charset=utf-8");
  response.headers.set("Cache-Control", "no-store");
  response.body = std::move(body);
  return response;
}

// Returns the page in the format of the health pages of Kubernetes' own components.
http::Response readiness_page(const std::vector<Check>& checks) {
  std::string body;
  bool ready = true;
  for (const Check& check : checks) {
    ready = ready && check.problem.empty();
    const std::string note = check.note.empty() ? "" : fmt::format(" ({})", check.note);
    body += check.problem.empty() ? fmt::format("[+]{} ok{}\n", check.name, note)
                                  : fmt::format("[-]{} failed: {}\n", check.name, check.problem);
  }
  body += ready ? "readyz check passed\n" : "readyz check failed\n";
  return plain(ready ? 200 : 503, std::move(body));
}

boost::asio::awaitable<void> answer(http::Exchange& exchange, const PageSources& sources) {
  // Ignore the error of a client that disconnects before the reply.
  static_cast<void>(co_await exchange.reply(status_page(exchange.request(), sources)));
}

http::ServerOptions limits_of_pages() {
  http::ServerOptions options;
  options.head_limit = head_limit;
  options.body_limit = body_limit;
  options.idle_timeout = idle_timeout;
  options.request_timeout = request_timeout;
  options.send_timeout = send_timeout;
  options.max_connections = connections;
  return options;
}

}  // namespace

http::Response status_page(const http::Request& request, const PageSources& sources) {
  const std::string path = request.target.substr(0, request.target.find('?'));
  if (path != "/metrics" && path != "/healthz" && path != "/readyz")
    return plain(404, "not found: try /metrics, /healthz or /readyz\n");
  if (request.method != "GET") {
    http::Response refusal = plain(405, "only GET is supported\n");
    refusal.headers.set("Allow", "GET");
    return refusal;
  }
  if (path == "/healthz") return plain(200, "ok\n");
  if (path == "/readyz") return readiness_page(sources.readiness());
  const bool open = prefers_open_metrics(request.headers.find("Accept").value_or(""));
  http::Response response = plain(200, open ? open_metrics(sources.metrics()) : sources.metrics());
  response.headers.set("Content-Type", open ? open_metrics_content_type : metrics_content_type);
  return response;
}

Result<ListenAddress> parse_listen_address(const std::string& text) {
  Error wrong(
      Errc::invalid,
      fmt::format(
          "\"{}\" is not an address to listen on: write it like 127.0.0.1:9475, [::1]:9475 or :9475 (all addresses)",
          text));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong;
  ListenAddress address;
  const auto port = parse_number<std::uint16_t>(std::string_view(text).substr(colon + 1));
  if (!port) return wrong;
  address.port = *port;
  address.host = text.substr(0, colon);
  if (address.host.empty()) return address;
  const bool bracketed = address.host.starts_with('[') && address.host.ends_with(']');
  if (bracketed) address.host = address.host.substr(1, address.host.size() - 2);
  boost::system::error_code unreadable;
  const auto parsed = boost::asio::ip::make_address(address.host, unreadable);
  if (unreadable || parsed.is_v6() != bracketed) return wrong;
  return address;
}

Result<std::unique_ptr<http::Server>> listen_on(boost::asio::any_io_executor executor, Clock& clock,
                                                const std::string& address, http::ServerOptions options,
                                                const http::Server::Handler& handler) {
  auto parsed = parse_listen_address(address);
  if (!parsed) return std::move(parsed).error();
  const bool everywhere = parsed->host.empty();
  // On Linux the address "::" accepts IPv4 connections, too.
  options.address = everywhere ? "::" : parsed->host;
  options.port = parsed->port;
  auto server = http::Server::listen(executor, clock, options, handler);
  if (server || !everywhere) return server;
  options.address = "0.0.0.0";
  auto without_ipv6 = http::Server::listen(std::move(executor), clock, std::move(options), handler);
  return without_ipv6 ? std::move(without_ipv6) : std::move(server);
}

Result<std::unique_ptr<http::Server>> serve_status_pages(boost::asio::any_io_executor executor, Clock& clock,
                                                         const std::string& address, PageSources sources) {
  auto server =
      listen_on(std::move(executor), clock, address, limits_of_pages(),
                [sources = std::move(sources)](http::Exchange& exchange) { return answer(exchange, sources); });
  if (!server) return std::move(server).error().with_context("--metrics-address");
  return server;
}

}  // namespace haulout::agent
