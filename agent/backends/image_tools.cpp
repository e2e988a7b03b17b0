#include "agent/backends/image_tools.hpp"

#include <fmt/format.h>

#include "base/plain_text.hpp"
#include "base/text.hpp"

namespace haulout::agent {

namespace {

// RPM_OSTREE_EXIT_UNCHANGED in rpm-ostree's src/app/rpmostree-builtin-types.h.
constexpr int unchanged = 77;
// ZYPPER_EXIT_INF_REBOOT_NEEDED and ZYPPER_EXIT_INF_RESTART_NEEDED, see zypper(8). The exit status for skipped
// repositories is not accepted as an answer, because it is unknown which updates such a repository has.
constexpr int reboot_needed = 102, restart_needed = 103;

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

// Returns the value of the first line "KEY: value", or an empty string if there is none.
std::string value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = trimmed(take_line(text));
    if (line.starts_with(key) && line.substr(key.size()).starts_with(':'))
      return one_line(trimmed(line.substr(key.size() + 1)));
  }
  return {};
}

Error unreadable(std::string_view program, std::string_view output) {
  return Error(Errc::decode, fmt::format("{} printed what the agent cannot read: {}", program,
                                         one_line(output.substr(0, output.find('\n')))));
}

// Returns the value of an attribute in the text of one XML tag; an empty string if there is none. Only for values that
// need no entities: names and versions of packages.
std::string_view attribute(std::string_view tag, std::string_view name) {
  for (std::size_t at = tag.find(name); at != std::string_view::npos; at = tag.find(name, at + 1)) {
    const std::string_view rest = tag.substr(at + name.size());
    const bool whole = at > 0 && (tag[at - 1] == ' ' || tag[at - 1] == '\n');
    if (!whole || rest.size() < 3 || rest[0] != '=' || (rest[1] != '"' && rest[1] != '\'')) continue;
    const std::size_t end = rest.find(rest[1], 2);
    return end == std::string_view::npos ? std::string_view() : rest.substr(2, end - 2);
  }
  return {};
}

// Returns the text of the next tag after `at` that begins with `name`, without "<"; moves `at` behind it.
std::optional<std::string_view> next_tag(std::string_view xml, std::string_view name, std::size_t& at) {
  const std::size_t begin = xml.find(name, at);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = xml.find('>', begin);
  if (end == std::string_view::npos) return std::nullopt;
  at = end;
  return xml.substr(begin + 1, end - begin - 1);
}

}  // namespace

Result<Updates> read_rpm_ostree_check(const ToolAnswers& answers) {
  const ProgramEnd& check = answers.front();
  if (check.status == unchanged || check.output.find("No updates available") != std::string::npos)
    return Updates{.need = Need::no};
  Updates updates{.need = Need::yes, .count = 1};
  // The value is like "41.20250302.3.0 (2025-03-10T19:31:04Z)". Only the part before " (" is the version that
  // rpm-ostreed reports in its properties.
  const std::string version = value_of(check.output, "Version");
  updates.target = version.substr(0, version.find(" ("));
  if (updates.target.empty()) updates.target = value_of(check.output, "Commit");
  if (updates.target.empty()) return unreadable("rpm-ostree upgrade --check", check.output);
  if (std::string diff = value_of(check.output, "Diff"); !diff.empty()) updates.first.push_back(std::move(diff));
  return updates;
}

Result<Updates> read_zypper_plan(const ToolAnswers& answers) {
  const std::string_view xml = answers.front().output;
  if (xml.find("<stream>") == std::string_view::npos || xml.find("</stream>") == std::string_view::npos)
    return unreadable("zypper --xmlout", xml);
  Updates updates{.need = Need::no};
  std::size_t at = xml.find("<install-summary");
  if (at == std::string_view::npos) return updates;  // zypper has printed "Nothing to do."
  while (const auto tag = next_tag(xml, "<solvable", at)) {
    const std::string_view name = attribute(*tag, "name"), to = attribute(*tag, "edition");
    const std::string_view from = attribute(*tag, "edition-old");
    if (name.empty()) return unreadable("zypper --xmlout", *tag);
    ++updates.count;
    if (updates.first.size() < named_updates)
      updates.first.push_back(
          one_line(from.empty() ? fmt::format("{} {}", name, to) : fmt::format("{} {} to {}", name, from, to)));
  }
  if (updates.count > 0) updates.need = Need::yes;
  return updates;
}

std::string suse_verb(const OsRelease& release) {
  // openSUSE Tumbleweed and the systems that are built from it. Their version is only a date.
  const bool rolling = release.id == "opensuse-microos" || release.id == "opensuse-aeon" ||
                       release.id == "opensuse-kalpa" || release.is_like("opensuse-tumbleweed");
  return rolling ? "dup" : "up";
}

std::optional<ImageTool> image_tool(std::string_view backend, const OsRelease& release, const std::string& bundle) {
  ImageTool tool{.name = std::string(backend)};
  if (backend == "rpm-ostree") {
    const std::string program = "/usr/bin/rpm-ostree";
    tool.look = {{{program, "upgrade", "--check"}, {0, unchanged}}};
    tool.read_offer = read_rpm_ostree_check;
    tool.offer_differs = true;
    tool.stage = {{program, "upgrade", "--unchanged-exit-77"}, {0, unchanged}};
    return tool;
  }
  if (backend == "bootc") {
    const ToolCommand status{{"/usr/bin/bootc", "status", "--format=json"}};
    tool.status = {status};
    tool.read_images = read_bootc_images;
    tool.look = {{{"/usr/bin/bootc", "upgrade", "--check"}}, status};
    tool.read_offer = read_bootc_offer;
    tool.stage = {{"/usr/bin/bootc", "upgrade"}};
    tool.hints = {"/run/ostree/staged-deployment", "/run/reboot-required"};
    return tool;
  }
  if (backend == "transactional-update") {
    const std::string verb = suse_verb(release);
    tool.status = {{{"/usr/bin/snapper", "--jsonout", "list", "--columns", "number,default,active"}}};
    tool.read_images = read_snapshots;
    tool.look = {
        {{"/usr/bin/zypper", "--non-interactive", "--xmlout", verb, "--dry-run"}, {0, reboot_needed, restart_needed}}};
    tool.read_offer = read_zypper_plan;
    tool.offer_differs = true;
    tool.versions_are_shared = false;
    tool.stage = {
        {"/usr/sbin/transactional-update", "--non-interactive", "--no-selfupdate", "--drop-if-no-change", verb}};
    tool.hints = {"/run/reboot-needed"};
    return tool;
  }
  if (backend == "rauc") {
    const std::string program = "/usr/bin/rauc";
    tool.status = {{{program, "status", "--detailed", "--output-format=json"}}};
    tool.read_images = read_rauc_images;
    tool.look = {{{program, "info", "--output-format=json", bundle}}};
    tool.read_offer = read_rauc_bundle;
    tool.stage = {{program, "install", bundle}};
    return tool;
  }
  if (backend == "sysupdate") {
    const std::string program = "/usr/lib/systemd/systemd-sysupdate";
    // `pending` ends with 1 if nothing is pending, but also after an error. So read_sysupdate_images() checks that the
    // list of versions agrees with it.
    tool.status = {{{program, "pending"}, {0, 1}}, {{program, "--offline", "--json=short", "list"}}};
    tool.read_images = read_sysupdate_images;
    tool.look = {{{program, "--json=short", "check-new"}}};
    tool.read_offer = read_sysupdate_offer;
    tool.stage = {{program, "update"}};
    return tool;
  }
  return std::nullopt;
}

}  // namespace haulout::agent
