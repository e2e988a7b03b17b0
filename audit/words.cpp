#include "audit/words.hpp"

#include "base/text.hpp"

namespace haulout::audit {

std::pair<std::string, std::string> text_and_way_out(std::string_view subject, const std::string& message) {
  const std::size_t end = message.find("; ");
  std::string text = message.substr(0, end);
  if (!subject.empty()) text = std::string(subject) + ": " + text;
  return {std::move(text), end == std::string::npos ? std::string() : message.substr(end + 2)};
}

std::string count_of_pods(std::size_t n) {
  return count_of(n, "pod");
}

}  // namespace haulout::audit
