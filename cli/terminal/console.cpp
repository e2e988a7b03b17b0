#include "cli/terminal/console.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <array>
#include <utility>

namespace haulout::cli {

namespace {

// In POSIX, the first of these variables that is set determines the character set.
bool is_utf8(const k8s::Environment& environment) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = environment.get(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

bool can_redraw(int fd, const k8s::Environment& environment) {
  const std::string term = environment.get("TERM");
  return ::isatty(fd) == 1 && !term.empty() && term != "dumb";
}

Terminal measure_terminal(int fd, const k8s::Environment& environment) {
  Terminal terminal;
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 && size.ws_row != 0) {
    terminal.width = size.ws_col;
    terminal.height = size.ws_row;
  }
  terminal.utf8 = is_utf8(environment);
  terminal.color = environment.get("NO_COLOR").empty();
  return terminal;
}

std::string user_at_host(const k8s::Environment& environment) {
  std::string user = environment.get("USER");
  if (const passwd* entry = ::getpwuid(::getuid()); entry != nullptr) user = entry->pw_name;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return (user.empty() ? "unknown" : user) + "@" + (host[0] == '\0' ? "unknown" : host.data());
}

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

// Returns the escape sequence that moves the cursor to the first line of the block and clears the screen from there on.
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
