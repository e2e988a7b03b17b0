#include "agent/console.hpp"

#include <fmt/format.h>

namespace haulout::agent {

void Console::say(std::string_view line) {
  text_.write(fmt::format("{}{}\n{}", erased(), line, drawn()));
}

void Console::warn(std::string_view line) {
  if (!block_.empty()) text_.write(erased());
  errors_.write(fmt::format("{}\n", line));
  if (!block_.empty()) text_.write(drawn());
}

void Console::set_block(std::vector<std::string> lines) {
  std::string output = erased();
  block_ = std::move(lines);
  output += drawn();
  if (!output.empty()) text_.write(output);
}

// Cursor to the block's first line, then everything below it is cleared.
std::string Console::erased() const {
  return block_.empty() ? "" : fmt::format("\r\x1b[{}A\x1b[J", block_.size());
}

std::string Console::drawn() const {
  std::string result;
  for (const std::string& line : block_) result += line + '\n';
  return result;
}

}  // namespace haulout::agent
