#include "k8s/warnings.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

// Each line is a Warning header.
static void one(std::string_view input) {
  const std::size_t size = input.size();
  http::Headers headers;
  while (!input.empty()) headers.add("Warning", take_line(input));
  std::size_t bytes = 0;
  for (const std::string& text : k8s::warnings_of(headers)) {
    must(!text.empty(), "no warning is empty");
    bytes += text.size();
    http::Headers again;
    std::string quoted;
    for (const char c : text) quoted += (c == '"' || c == '\\') ? std::string{'\\', c} : std::string{c};
    again.add("Warning", "299 - \"" + quoted + "\"");
    must(k8s::warnings_of(again) == std::vector<std::string>{text}, "what is written is read again");
  }
  must(bytes <= size && bytes <= 4096, "there is no more than was sent, and not too much");
}

static const Target target("warnings", one);

}  // namespace haulout::fuzz
