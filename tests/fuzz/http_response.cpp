#include "http/parser.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {
namespace {

struct Read {
  bool good = false;
  int status = 0;
  std::string body{};
  bool operator==(const Read&) const = default;
};

// Reads as from a connection: bytes that the parser does not consume are passed again, followed by more bytes.
Read read_in_pieces(std::string_view bytes, std::size_t piece) {
  http::ResponseParser parser({std::size_t{16} * 1024, std::uint64_t{1} << 20});
  std::string waiting;
  while (!bytes.empty() && !parser.done()) {
    waiting += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    const auto taken = parser.put(waiting);
    if (!taken) return {};
    must(*taken <= waiting.size(), "no more is taken than there is");
    waiting.erase(0, *taken);
  }
  if (!parser.done() && !parser.put_eof()) return {};
  if (!parser.done()) return {};
  return {true, parser.head().status, parser.body()};
}

}  // namespace

// The first byte plus one is the size of the pieces in which the rest arrives.
static void one(std::string_view input) {
  if (input.empty()) return;
  const std::size_t piece = static_cast<unsigned char>(input.front()) + std::size_t{1};
  input.remove_prefix(1);
  const Read read = read_in_pieces(input, piece);
  const Read whole = read_in_pieces(input, std::string_view::npos);
  must(read == whole, "an answer does not depend on how the bytes come");
}

static const Target target("http_response", one);

}  // namespace haulout::fuzz
