#include "cli/terminal/console.hpp"

#include <fmt/format.h>

#include <utility>

namespace haulout::cli {

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

void Console::step_aside() {
  if (!block_.empty()) text_.write(erased());
  aside_ = true;
}

void Console::come_back() {
  if (std::exchange(inside_a_line_, false)) errors_.write("\n");
  aside_ = false;
  if (!block_.empty()) text_.write(drawn());
}

void Console::pass_on(std::string_view text) {
  if (text.empty()) return;
  inside_a_line_ = text.back() != '\n';
  errors_.write(text);
}

// The escape sequence that moves the cursor to the first line of the block and clears everything from there on.
std::string Console::erased() const {
  return aside_ || block_.empty() ? "" : fmt::format("\r\x1b[{}A\x1b[J", block_.size());
}

std::string Console::drawn() const {
  std::string result;
  if (aside_) return result;
  for (const std::string& line : block_) result += line + '\n';
  return result;
}

k8s::PluginStage plugin_stage(Console& console) {
  return {[&console] { console.step_aside(); }, [&console](std::string_view text) { console.pass_on(text); },
          [&console] { console.come_back(); }};
}

}  // namespace haulout::cli
