#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "agent/process/process.hpp"
#include "base/duration.hpp"
#include "base/text.hpp"
#include "cli/audit/audit_report.hpp"

namespace haulout::cli {
namespace {

using audit::Severity;
using audit::Verdict;

// The largest number of culprits and of assumptions that are listed. -o json has all.
constexpr std::size_t most_culprits = 10;
constexpr std::size_t most_assumed = 20;

std::string head_of(const audit::Report& report) {
  const std::string what =
      fmt::format("{} of {}", count_of(report.pods, "pod"), count_of(report.owners_in_all, "owner"));
  const std::string findings =
      fmt::format("{} {} a drain, {} a risk, {} worth a note", count_of(report.count(Severity::blocks), "finding"),
                  report.count(Severity::blocks) == 1 ? "blocks" : "block", report.count(Severity::risk),
                  report.count(Severity::note));
  const std::string known = report.known == 0 ? "" : fmt::format("; {} in the baseline", report.known);
  if (report.of_manifests) return fmt::format("manifests with {}: {}{}", what, findings, known);
  return fmt::format("{}, {}: {}{}", count_of(report.nodes.size(), "node"), what, findings, known);
}

void add_owner(std::vector<std::string>& lines, const audit::Owner& owner) {
  std::string about;
  if (!owner.team.empty()) about = "team " + printable(owner.team);
  if (owner.pods > 0) about += (about.empty() ? "" : ", ") + count_of(owner.pods, "pod");
  lines.push_back(printable(owner.name.text()) + (about.empty() ? "" : " (" + about + ")"));
  for (const audit::Finding& finding : owner.findings) {
    lines.push_back(fmt::format("  {:<6}  {}: {}", to_string(finding.severity), finding.id, printable(finding.text)));
    if (!finding.way_out.empty()) lines.push_back("          way out: " + printable(finding.way_out));
    if (!finding.file.empty()) lines.push_back("          file: " + printable(finding.file));
    if (!finding.nodes.empty()) lines.push_back("          nodes: " + printable(some_of(finding.nodes)));
    if (!finding.pods.empty()) lines.push_back("          pods: " + printable(some_of(finding.pods)));
  }
}

// Returns the owners whose pods block nodes, by the number of nodes.
std::string blockers(const audit::Report& report) {
  std::map<std::string, std::set<std::string>> nodes;
  for (const audit::NodeResult& node : report.nodes)
    for (const audit::Culprit& culprit : node.blocked_by)
      if (!culprit.owner.empty()) nodes[culprit.owner].insert(node.name);
  std::vector<std::pair<std::size_t, std::string>> ranked;
  ranked.reserve(nodes.size());
  for (const auto& [owner, of] : nodes) ranked.emplace_back(of.size(), owner);
  std::ranges::sort(
      ranked, [](const auto& a, const auto& b) { return std::tie(b.first, a.second) < std::tie(a.first, b.second); });
  std::vector<std::string> names;
  names.reserve(ranked.size());
  for (const auto& [count, owner] : ranked) names.push_back(printable(owner));
  return names.empty() ? "" : " by " + some_of(names);
}

std::string sum_of(const audit::Report& report) {
  const std::size_t without_room = report.count(Verdict::drains_without_room);
  std::string sum =
      fmt::format("nodes: {} can be drained{}, {} blocked{}", report.count(Verdict::drains) + without_room,
                  without_room == 0 ? "" : fmt::format(" ({} without room for all pods)", without_room),
                  report.count(Verdict::blocked), blockers(report));
  if (const std::size_t not_rehearsed = report.count(Verdict::not_rehearsed); not_rehearsed > 0)
    sum += fmt::format(", {} not rehearsed (--rehearse-at-most, --no-rehearse)", not_rehearsed);
  return sum;
}

std::string verdict_of(const audit::NodeResult& node) {
  const std::string took = node.took ? " in " + format_whole_seconds(*node.took) : "";
  switch (node.verdict) {
    case Verdict::drains: return "drains" + took;
    case Verdict::drains_without_room:
      return fmt::format("drains{}, and {} without a node: {}", took, count_of(node.without_room.size(), "pod"),
                         printable(some_of(node.without_room)));
    case Verdict::blocked: return "is blocked";
    case Verdict::not_rehearsed: return "was not rehearsed";
  }
  return {};
}

void add_node(std::vector<std::string>& lines, const audit::NodeResult& node) {
  lines.push_back(fmt::format("  node/{} {}", node.name, verdict_of(node)));
  for (std::size_t i = 0; i < std::min(node.blocked_by.size(), most_culprits); ++i) {
    const audit::Culprit& culprit = node.blocked_by[i];
    const std::string who =
        culprit.pod.empty() ? culprit.reason : fmt::format("pod {} ({})", culprit.pod, culprit.owner);
    lines.push_back(fmt::format("    {}: {}", printable(who), printable(culprit.text)));
  }
  if (node.blocked_by.size() > most_culprits)
    lines.push_back(fmt::format("    … and {} more", node.blocked_by.size() - most_culprits));
}

void add_nodes(std::vector<std::string>& lines, const audit::Report& report) {
  if (report.of_manifests) return;
  lines.push_back(sum_of(report));
  for (const audit::NodeResult& node : report.nodes)
    if (node.verdict != Verdict::not_rehearsed) add_node(lines, node);
}

void add_assumed(std::vector<std::string>& lines, const std::vector<std::string>& assumed) {
  lines.emplace_back("assumed:");
  for (std::size_t i = 0; i < std::min(assumed.size(), most_assumed); ++i)
    lines.push_back("  " + printable(assumed[i]));
  if (assumed.size() > most_assumed) lines.push_back(fmt::format("  … and {} more", assumed.size() - most_assumed));
}

}  // namespace

int exit_code(const audit::Report& report, Severity fail_on) {
  const bool fails =
      std::ranges::any_of(report.owners, [&](const audit::Owner& owner) { return owner.worst() >= fail_on; });
  return fails ? agent::exit_not_done : agent::exit_done;
}

std::vector<std::string> audit_lines(const audit::Report& report) {
  std::vector<std::string> lines{head_of(report)};
  for (const audit::Owner& owner : report.owners) add_owner(lines, owner);
  add_nodes(lines, report);
  add_assumed(lines, report.assumed);
  return lines;
}

}  // namespace haulout::cli
