#include "http/client.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
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
