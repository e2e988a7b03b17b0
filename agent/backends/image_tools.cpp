#include "agent/backends/image_tools.hpp"

#include <fmt/format.h>

#include <algorithm>

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

// A deployment of ostree. Lists of them have the order of `ostree admin status`: the boot loader boots the first one.
struct OstreeDeployment {
  std::string checksum{};  // of its commit
  std::string version{};   // empty if the commit has none
  std::string refspec{};   // the branch that it follows: "REMOTE:BRANCH", or "BRANCH" for a local one; may be empty
  bool booted = false;
  bool staged = false;  // becomes the first one while the machine shuts down
  bool locked = false;  // staged, and discarded by a reboot
};

constexpr std::string_view ostree_program = "/usr/bin/ostree", ostree_status = "ostree admin status",
                           ostree_show = "ostree show";
constexpr std::string_view hexadecimal = "0123456789abcdef";
// Characters of a checksum: SHA-256 in hexadecimal digits. And as many of them as tell commits apart for people.
constexpr std::size_t checksum_size = 64, shown_checksum = 12;

// The version alone does not identify a commit, because two commits may have the same one.
std::string called(const std::string& version, const std::string& checksum) {
  const std::string shown = checksum.substr(0, shown_checksum);
  return version.empty() ? shown : fmt::format("{} ({})", version, shown);
}

std::string called(const OstreeDeployment& deployment) {
  return called(deployment.version, deployment.checksum);
}

// Returns the checksum at the front of the text, or an empty string if there is none.
std::string checksum_of(std::string_view text) {
  const std::size_t size = std::min(text.find_first_not_of(hexadecimal), text.size());
  return size == checksum_size ? std::string(text.substr(0, size)) : std::string();
}

// Reads the first line about a deployment: "* OS CHECKSUM.SERIAL (staged)". The asterisk is at the booted one; others
// have a space instead. Returns nothing if the line has another form.
std::optional<OstreeDeployment> deployment_of(std::string_view line) {
  if (!line.starts_with("* ") && !line.starts_with("  ")) return std::nullopt;
  OstreeDeployment out{.booted = line.front() == '*'};
  line.remove_prefix(2);
  const std::size_t os = line.find(' ');
  if (os == 0 || os == std::string_view::npos) return std::nullopt;
  line.remove_prefix(os + 1);
  out.checksum = checksum_of(line);
  if (out.checksum.empty() || line.substr(checksum_size, 1) != ".") return std::nullopt;
  line.remove_prefix(checksum_size + 1);
  const std::size_t serial = std::min(line.find_first_not_of("0123456789"), line.size());
  line.remove_prefix(serial);
  if (serial == 0 || (!line.empty() && line.front() != ' ')) return std::nullopt;
  out.locked = line.find("(finalization locked)") != std::string_view::npos;
  out.staged = out.locked || line.find("(staged)") != std::string_view::npos;
  return out;
}

// Adds an indented line about a deployment. Unknown lines are ignored: signatures, titles, what newer versions add.
void add_detail(OstreeDeployment& deployment, std::string_view line) {
  if (deployment.version.empty()) deployment.version = value_of(line, "Version");
  if (deployment.refspec.empty()) deployment.refspec = value_of(line, "origin refspec");
}

// Reads the output of `ostree admin status`. Exactly one of the deployments is booted.
Result<std::vector<OstreeDeployment>> deployments_of(std::string_view text) {
  std::vector<OstreeDeployment> all;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (trimmed(line).empty()) continue;
    if (line.starts_with("    ") && !all.empty()) {
      add_detail(all.back(), line);
    } else if (auto deployment = deployment_of(line)) {
      all.push_back(*std::move(deployment));
    } else {
      return unreadable(ostree_status, line);
    }
  }
  const auto booted = std::count_if(all.begin(), all.end(), [](const auto& deployment) { return deployment.booted; });
  if (booted != 1)
    return Error(
        Errc::decode,
        fmt::format("{} marks {} deployments as booted, but exactly one is expected; has ostree booted this machine?",
                    ostree_status, booted));
  return all;
}

// The booted one of deployments_of().
const OstreeDeployment& booted_of(const std::vector<OstreeDeployment>& all) {
  return *std::find_if(all.begin(), all.end(), [](const auto& deployment) { return deployment.booted; });
}

}  // namespace

Result<Images> read_ostree_images(const ToolAnswers& answers, const OsRelease&) {
  auto all = deployments_of(answers.front().output);
  if (!all) return std::move(all).error();
  const auto staged = std::find_if(all->begin(), all->end(), [](const auto& deployment) { return deployment.staged; });
  const OstreeDeployment& next = staged != all->end() ? *staged : all->front();
  if (next.locked)
    return Error(
        Errc::unavailable,
        fmt::format("deployment {} is staged and locked, so a reboot would not boot it; unlock it (ostree admin "
                    "lock-finalization --unlock), or remove it (ostree admin undeploy)",
                    called(next)));
  Images images{.booted = called(booted_of(*all))};
  if (!next.booted) images.next = called(next);
  return images;
}

Result<std::vector<ToolCommand>> look_at_ostree_branch(const ToolAnswers& answers) {
  auto all = deployments_of(answers.front().output);
  if (!all) return std::move(all).error();
  const OstreeDeployment& booted = booted_of(*all);
  const std::string& refspec = booted.refspec;
  if (refspec.empty() || refspec.front() == '-' || refspec.find(' ') != std::string::npos)
    return Error(
        Errc::unavailable,
        fmt::format("the running deployment follows no branch from which ostree could update it: its origin is "
                    "\"{}\"; set one with ostree admin switch, or set update to off",
                    refspec));
  const std::string program(ostree_program);
  const ToolCommand show{{program, "show", refspec}};
  const std::size_t colon = refspec.find(':');
  if (colon == std::string::npos) return std::vector<ToolCommand>{show};
  const ToolCommand pull{{program, "pull", "--commit-metadata-only", "--timestamp-check-from-rev=" + booted.checksum,
                          refspec.substr(0, colon), refspec.substr(colon + 1)}};
  return std::vector<ToolCommand>{pull, show};
}

Result<Updates> read_ostree_offer(const ToolAnswers& answers) {
  auto all = deployments_of(answers.front().output);
  if (!all) return std::move(all).error();
  const std::string_view shown = answers.back().output;
  std::string_view rest = shown;
  const std::string_view commit = take_line(rest);
  const std::string checksum =
      commit.starts_with("commit ") ? checksum_of(trimmed(commit.substr(std::string_view("commit ").size()))) : "";
  if (checksum.empty()) return unreadable(ostree_show, shown);
  if (checksum == booted_of(*all).checksum) return Updates{.need = Need::no};
  // After the head, the lines of the commit's subject and text are indented, and may have any content.
  const std::size_t head = std::min({rest.find("\n\n"), rest.find("\n "), rest.size()});
  Updates updates{.need = Need::yes, .count = 1};
  updates.target = called(value_of(rest.substr(0, head), "Version"), checksum);
  if (std::string subject = first_line(rest.substr(head)); !subject.empty() && subject != "(no subject)")
    updates.first.push_back(std::move(subject));
  return updates;
}

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
  if (backend == "ostree") {
    const std::string program(ostree_program);
    tool.status = {{{program, "admin", "status"}}};
    tool.read_images = read_ostree_images;
    tool.look = tool.status;
    tool.look_closer = look_at_ostree_branch;
    tool.read_offer = read_ostree_offer;
    // Without --stage, ostree would copy /etc to the new deployment at once, and what changes there before the reboot
    // would be lost.
    tool.stage = {{program, "admin", "upgrade", "--stage"}};
    // ostree changes the time of the directory whenever the list of deployments changes.
    tool.hints = {"/run/ostree/staged-deployment", "/ostree/deploy"};
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
