#include "cli/terminal/terminal.hpp"

#include <pwd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>

namespace haulout::cli {
namespace {

// In POSIX, the first of these variables that is set decides the character set.
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

}  // namespace haulout::cli
