#include "agent/backends/old_services.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.hpp"
#include "base/plain_text.hpp"

namespace haulout::agent {

namespace {

bool is_unit(std::string_view name) {
  constexpr std::string_view others = ":-_.\\@+";
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_alphanumeric(c) || others.find(c) != std::string_view::npos;
  });
}

// The states of a service that has failed, or that ended although it must run always (systemd/src/basic/unit-def.c).
bool has_failed(std::string_view state) {
  constexpr std::array<std::string_view, 5> failed{"failed", "auto-restart", "auto-restart-queued",
                                                   "failed-before-auto-restart", "dead-before-auto-restart"};
  return std::find(failed.begin(), failed.end(), state) != failed.end();
}

}  // namespace

Result<std::vector<std::string>> parse_needrestart(std::string_view output) {
  constexpr std::string_view version = "NEEDRESTART-VER: ", service = "NEEDRESTART-SVC: ";
  std::vector<std::string> services;
  bool known = false;
  while (!output.empty()) {
    const std::string_view line = take_line(output);
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

Result<std::vector<std::string>> parse_states(const std::vector<std::string>& services, std::string_view output) {
  std::vector<std::string> failed;
  std::size_t states = 0;
  while (!output.empty()) {
    const std::string_view state = take_line(output);
    if (state.empty()) continue;  // between two services
    if (states < services.size() && has_failed(state)) failed.push_back(services[states]);
    ++states;
  }
  if (states == services.size()) return failed;
  return Error(Errc::decode, fmt::format("systemctl show printed {} states for {} services", states, services.size()));
}

}  // namespace haulout::agent
