#include "k8s/warnings.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

namespace haulout::k8s {
namespace {

constexpr std::size_t most_bytes = std::size_t{4} * 1024;

bool is_named(std::string_view name, std::string_view wanted) {
  return std::equal(name.begin(), name.end(), wanted.begin(), wanted.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  });
}

void skip(std::string_view& text, std::string_view what) {
  text.remove_prefix(std::min(text.find_first_not_of(what), text.size()));
}

// Removes the text up to the next blank, and returns it.
std::string_view word(std::string_view& text) {
  skip(text, " \t");
  const std::string_view taken = text.substr(0, text.find_first_of(" \t"));
  text.remove_prefix(taken.size());
  return taken;
}

std::optional<std::string> quoted(std::string_view& text) {
  skip(text, " \t");
  if (text.empty() || text.front() != '"') return std::nullopt;
  std::string out;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return out;
    }
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    out += text[i];
  }
  return std::nullopt;
}

// Parses the value of a Warning header: 299 AGENT "TEXT" ["DATE"], …
void read(std::string_view text, std::vector<std::string>& warnings) {
  for (;;) {
    skip(text, " \t,");
    if (text.empty()) return;
    const std::string_view code = word(text);
    word(text);
    auto warning = quoted(text);
    if (!warning) return;
    if (code == "299" && !warning->empty()) warnings.push_back(*std::move(warning));
    skip(text, " \t");
    if (!text.empty() && text.front() == '"' && !quoted(text)) return;
  }
}

}  // namespace

std::vector<std::string> warnings_of(const http::Headers& headers) {
  std::vector<std::string> warnings;
  for (const http::Headers::Field& field : headers.fields())
    if (is_named(field.name, "Warning")) read(field.value, warnings);
  std::size_t bytes = 0;
  const auto end = std::find_if(warnings.begin(), warnings.end(),
                                [&bytes](const std::string& text) { return (bytes += text.size()) > most_bytes; });
  warnings.erase(end, warnings.end());
  return warnings;
}

}  // namespace haulout::k8s
