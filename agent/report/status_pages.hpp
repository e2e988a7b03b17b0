// /metrics, /healthz and /readyz on --metrics-address.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/server.hpp"

namespace haulout::agent {

struct Check {
  std::string name{};
  std::string problem{};  // empty: all is well
  std::string note{};     // what the page says beside that; no reason not to be ready
};

// Where the pages get what they show; called for each request.
struct PageSources {
  std::function<std::string()> metrics;
  std::function<std::vector<Check>()> readiness;
};

// The answer to a request. Pure but for its sources.
http::Response status_page(const http::Request& request, const PageSources& sources);

struct ListenAddress {
  std::string host{};  // numeric; empty: all addresses
  std::uint16_t port = 0;
};
// "127.0.0.1:9475", "[::1]:9475", ":9475". Errc::invalid for anything else, names among it.
Result<ListenAddress> parse_listen_address(const std::string& text);

// Listens; run() of the server serves. Errc::unavailable with the address and why.
Result<std::unique_ptr<http::Server>> serve_status_pages(boost::asio::any_io_executor executor, Clock& clock,
                                                         const std::string& address, PageSources sources);

}  // namespace haulout::agent
