#include "http/client.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void proxy(std::string_view input) {
  const auto proxy = http::parse_proxy(input);
  if (!proxy) return must(!proxy.error().message().empty(), "an error says what it is");
  must(!proxy->host.empty() && proxy->port != 0, "a proxy is somewhere");
}

static void one(std::string_view input) {
  proxy(input);
  std::string prefix;
  const auto endpoint = http::parse_endpoint(input, &prefix);
  if (!endpoint) return must(!endpoint.error().message().empty(), "an error says what it is");
  must(!endpoint->host.empty(), "an address leads somewhere");
  if (endpoint->kind == http::Endpoint::Kind::unix_socket) return;
  must(endpoint->port != 0, "to a port");
  must(prefix.empty() || prefix.front() == '/', "a prefix is a path");
}

static const Target target("endpoint", one);

}  // namespace haulout::fuzz
