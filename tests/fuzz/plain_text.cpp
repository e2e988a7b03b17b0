#include "base/plain_text.hpp"

#include <tuple>

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const std::string line = one_line(input);
  must(line.size() <= line_limit, "it is no longer than it may be");
  must(one_line(line) == line, "one line stays one line");
  for (const char c : line) must(static_cast<unsigned char>(c) >= ' ', "nothing in it steers a terminal");
  std::ignore = first_line(input);
  std::ignore = last_line(input);
}

static const Target target("plain_text", one);

}  // namespace haulout::fuzz
