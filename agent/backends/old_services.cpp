#include "agent/backends/old_services.hpp"

#include <algorithm>

#include "base/plain_text.hpp"

namespace haulout::agent {

namespace {

bool is_unit(std::string_view name) {
  constexpr std::string_view others = ":-_.\\@+";
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

}  // namespace

Result<std::vector<std::string>> parse_needrestart(std::string_view output) {
  constexpr std::string_view version = "NEEDRESTART-VER: ", service = "NEEDRESTART-SVC: ";
  std::vector<std::string> services;
  bool known = false;
  while (!output.empty()) {
    const std::size_t end = std::min(output.find('\n'), output.size());
    const std::string_view line = output.substr(0, end);
    output.remove_prefix(std::min(end + 1, output.size()));
    if (line.starts_with(version)) known = true;
    if (!line.starts_with(service)) continue;
    const std::string_view name = line.substr(service.size());
    if (!is_unit(name))
      return Error(Errc::decode, "needrestart printed a line that the agent cannot read: " + one_line(line));
    if (std::find(services.begin(), services.end(), name) == services.end()) services.emplace_back(name);
  }
  if (!known) return Error(Errc::decode, "needrestart printed nothing that the agent can read");
  return services;
}

}  // namespace haulout::agent
