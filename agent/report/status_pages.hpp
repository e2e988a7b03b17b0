// HTTP pages /metrics, /healthz and /readyz on --metrics-address.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/server.hpp"

namespace haulout::agent {

// A row of the page /readyz.
struct Check {
  std::string name{};
  std::string problem{};  // empty if the check passes
  std::string note{};     // shown next to the result of a passed check; does not affect readiness
};

// Functions that return the content of the pages; the server calls them for each request.
struct PageSources {
  std::function<std::string()> metrics;  // in the text format 0.0.4
  std::function<std::vector<Check>()> readiness;
};

// Returns the response to a request. Pure, except for the calls of `sources`.
http::Response status_page(const http::Request& request, const PageSources& sources);

struct ListenAddress {
  std::string host{};  // numeric IP address; empty means all addresses
  std::uint16_t port = 0;
};
// Parses "127.0.0.1:9475", "[::1]:9475" or ":9475". Fails with Errc::invalid for anything else, also for host names.
Result<ListenAddress> parse_listen_address(const std::string& text);

// Binds the address, in the form of parse_listen_address(); the caller owns the server and runs it with run(). Takes
// address and port from `address`, all else from `options`. Fails as parse_listen_address() does, and with
// Errc::unavailable, with the address and the cause, if the address cannot be bound.
Result<std::unique_ptr<http::Server>> listen_on(boost::asio::any_io_executor executor, Clock& clock,
                                                const std::string& address, http::ServerOptions options,
                                                const http::Server::Handler& handler);

// Serves the pages on the address; the caller owns the server and runs it with run(). Fails as
// listen_on() does.
Result<std::unique_ptr<http::Server>> serve_status_pages(boost::asio::any_io_executor executor, Clock& clock,
                                                         const std::string& address, PageSources sources);

}  // namespace haulout::agent
