#include "k8s/reflector.hpp"

#include <vector>

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {
namespace {

std::vector<std::string> lines_of(std::string_view bytes, std::size_t piece) {
  k8s::LineSplitter splitter;
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    splitter.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (const auto line = splitter.next()) lines.emplace_back(*line);
  }
  return lines;
}

}  // namespace

// The first byte plus one is the size of the pieces in which the rest arrives.
static void one(std::string_view input) {
  if (input.empty()) return;
  const std::size_t piece = static_cast<unsigned char>(input.front()) + std::size_t{1};
  input.remove_prefix(1);
  const auto lines = lines_of(input, piece);
  must(lines == lines_of(input, std::string_view::npos), "lines do not depend on how the bytes come");
  std::string joined;
  for (const std::string& line : lines) joined += line + "\n";
  must(input.starts_with(joined), "lines are what was fed, in order");
  must(input.find('\n', joined.size()) == std::string_view::npos, "no line is kept back");
}

static const Target target("line_splitter", one);

}  // namespace haulout::fuzz
