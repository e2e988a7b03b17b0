#include "agent/backends/apt_updates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/ascii.hpp"
#include "base/plain_text.hpp"
#include "base/text.hpp"

namespace haulout::agent {

namespace {

// The characters of a package name are those of deb-control(5), with the ":" before an architecture. The first
// character is never "-", so that apt-get does not take a name for an option.
bool is_package(std::string_view name) {
  return !name.empty() && is_alphanumeric(name.front()) && std::all_of(name.begin(), name.end(), [](char c) {
    return is_alphanumeric(c) || c == '+' || c == '-' || c == '.' || c == ':' || c == '_';
  });
}

// The characters of a version, by deb-version(7).
bool is_version(std::string_view version) {
  return !version.empty() && is_alphanumeric(version.front()) &&
         std::all_of(version.begin(), version.end(), [](char c) {
           return is_alphanumeric(c) || c == '.' || c == '+' || c == '-' || c == '~' || c == ':';
         });
}

// Removes the text up to the next `end` and the `end` itself, and returns the text. Returns everything if there is no
// `end`.
std::string_view take_until(std::string_view& rest, char end) {
  const std::size_t found = std::min(rest.find(end), rest.size());
  const std::string_view taken = rest.substr(0, found);
  rest.remove_prefix(std::min(found + 1, rest.size()));
  return taken;
}

// Returns true if one of the origins is a security archive. They are printed as "Debian:12.5/stable,
// Debian-Security:12/stable-security": label, version and archive of each Release file.
bool from_security(std::string_view origins) {
  while (!origins.empty()) {
    std::string_view origin = take_until(origins, ',');
    // If the Release file has no version, as that of Debian's testing-security, apt prints neither version nor "/". The
    // name of the archive then follows the ":".
    if (origin.ends_with("-security") && origin.find_first_of(":/") != std::string_view::npos) return true;
  }
  return false;
}

Error unreadable(std::string_view line) {
  return Error(Errc::decode, "apt-get --simulate printed a line that the agent cannot read: " + one_line(line));
}

// Reads the rest of a line that begins with Inst: `openssl [3.0.15-1] (3.0.16-1 Debian:12/stable [amd64]) []`.
Result<AptUpdate> parse_update(std::string_view line) {
  std::string_view rest = line;
  AptUpdate update;
  update.package = take_until(rest, ' ');
  if (!is_package(update.package)) return unreadable(line);
  if (rest.starts_with('[')) {
    rest.remove_prefix(1);
    update.from = take_until(rest, ']');
    if (!is_version(update.from) || !rest.starts_with(' ')) return unreadable(line);
    rest.remove_prefix(1);
  }
  if (!rest.starts_with('(') || rest.find(')') == std::string_view::npos) return unreadable(line);
  rest.remove_prefix(1);
  std::string_view candidate = take_until(rest, ')');
  update.to = take_until(candidate, ' ');
  if (!is_version(update.to)) return unreadable(line);
  const std::size_t architecture = candidate.rfind(" [");
  update.security = from_security(candidate.substr(0, architecture));
  return update;
}

std::string words_of(const AptUpdate& update) {
  if (update.from.empty()) return fmt::format("{} {} (new)", update.package, update.to);
  return fmt::format("{} {} to {}", update.package, update.from, update.to);
}

}  // namespace

Result<AptPlan> parse_simulation(std::string_view output) {
  AptPlan plan;
  std::set<std::string> installed;
  while (!output.empty()) {
    std::string_view line = take_until(output, '\n');
    const std::string_view whole = line;
    const std::string_view verb = take_until(line, ' ');
    if (verb == "Inst") {
      auto update = parse_update(line);
      if (!update) return unreadable(whole);
      installed.insert(update->package);
      plan.updates.push_back(*std::move(update));
    } else if (verb == "Conf" || verb == "Remv") {
      std::string package(take_until(line, ' '));
      if (!is_package(package)) return unreadable(whole);
      if (verb == "Remv")
        plan.removed.push_back(std::move(package));
      else if (!installed.contains(package))
        plan.unfinished.push_back(std::move(package));
    }
  }
  return plan;
}

AptPlan only_security(AptPlan plan) {
  std::erase_if(plan.updates, [](const AptUpdate& update) { return !update.security || update.from.empty(); });
  return plan;
}

std::vector<std::string> automatic(const AptPlan& plan, std::string_view output) {
  std::set<std::string_view> marked;
  while (!output.empty()) marked.insert(take_until(output, '\n'));
  std::vector<std::string> found;
  for (const AptUpdate& update : plan.updates)
    if (marked.contains(update.package)) found.push_back(update.package);
  return found;
}

Updates updates_of(const AptPlan& plan) {
  Updates updates{.need = Need::no, .count = plan.updates.size() + plan.unfinished.size()};
  if (updates.count > 0) updates.need = Need::yes;
  std::vector<std::string>& first = updates.first;
  for (const std::string& package : plan.unfinished)
    if (first.size() < named_updates) first.push_back(one_line(package + " (not configured)"));
  for (const AptUpdate& update : plan.updates)
    if (first.size() < named_updates) first.push_back(one_line(words_of(update)));
  return updates;
}

std::string still_waiting(const AptPlan& plan, const AptPlan& after) {
  std::vector<std::string> waiting;
  for (const AptUpdate& update : after.updates) {
    const bool was_wanted = std::any_of(plan.updates.begin(), plan.updates.end(), [&](const AptUpdate& wanted) {
      return wanted.package == update.package && wanted.to == update.to;
    });
    if (was_wanted) waiting.push_back(words_of(update));
  }
  for (const std::string& package : after.unfinished) waiting.push_back(package + " (not configured)");
  return waiting.empty() ? std::string() : some_of(waiting);
}

}  // namespace haulout::agent
