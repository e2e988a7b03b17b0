#include "http/parser.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  http::RequestParser parser({std::size_t{16} * 1024, std::uint64_t{1} << 16});
  std::string waiting(input);
  while (!waiting.empty() && !parser.done()) {
    const auto taken = parser.put(waiting);
    if (!taken) return;
    must(*taken <= waiting.size(), "no more is taken than there is");
    if (*taken == 0) return;
    waiting.erase(0, *taken);
  }
  if (parser.done()) must(!parser.request().method.empty(), "a request has a method");
}

static const Target target("http_request", one);

}  // namespace haulout::fuzz
