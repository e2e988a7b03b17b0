#include <fmt/format.h>

#include "base/duration.hpp"
#include "base/text.hpp"
#include "cli/people/explanation.hpp"

namespace haulout::cli {
namespace {

using Cells = std::vector<std::string>;
using Lines = std::vector<std::string>;

std::string or_none(const std::string& text) {
  return text.empty() ? "<none>" : printable(text);
}

// Appends the rows as lines with two blanks in front. Each column is as wide as its widest cell.
void add_table(Lines& lines, const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths;
  for (const Cells& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  for (const Cells& row : rows) {
    std::string line = "  ";
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i + 1 == row.size() ? row[i] : padded(row[i], widths[i]) + "   ";
    lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

void add_fact(Lines& lines, std::string_view name, const std::string& value) {
  if (!value.empty()) lines.push_back(padded(fmt::format("{}:", name), 13) + printable(value));
}

std::string state_line(const Explanation& about) {
  std::string line = state_text(about.node);
  if (!about.node.reason.empty()) line += " (" + about.node.reason + ")";
  if (about.node.since) line += ", for " + age_text(*about.node.since, about.at);
  return line;
}

std::string reboot_line(const Explanation& about) {
  std::string line = about.node.reboot_required.empty() ? "<none>" : about.node.reboot_required;
  if (about.node.requested) {
    line += ", requested";
    if (!about.node.request_reason.empty()) line += ": " + about.node.request_reason;
  }
  if (about.record && !about.record->reasons.empty()) line += ", because of " + joined(about.record->reasons, ", ");
  return line;
}

std::string update_line(const NodeView& node) {
  if (node.to.empty()) return node.from.empty() ? "" : "from " + node.from;
  return node.from.empty() ? "to " + node.to : node.from + " to " + node.to;
}

std::string last_update(const Explanation& about) {
  if (!about.node.last_update) return {};
  std::string line = age_text(*about.node.last_update, about.at) + " ago";
  if (about.record && !about.record->durations.empty())
    line += ", took " + format_duration(std::chrono::seconds(about.record->durations.back()));
  return line;
}

void add_facts(Lines& lines, const Explanation& about) {
  const NodeView& node = about.node;
  add_fact(lines, "Name", node.name);
  add_fact(lines, "State", state_line(about));
  add_fact(lines, "Reboot", reboot_line(about));
  add_fact(lines, "Update", update_line(node));
  add_fact(lines, "Last update", last_update(about));
  add_fact(lines, "OS image", node.os_image);
  add_fact(lines, "Pool", node.pool);
  if (about.record) add_fact(lines, "Authority", about.record->authority);
  add_fact(lines, "Cordon", about.cordon.empty() ? "<none>" : about.cordon);
}

void add_attempts(Lines& lines, const Explanation& about) {
  if (!about.record || about.record->attempts.empty()) return;
  std::vector<Cells> rows{{"ENDED", "REASON", "WHY"}};
  const auto& attempts = about.record->attempts;
  for (auto each = attempts.rbegin(); each != attempts.rend(); ++each)
    rows.push_back({age_text(each->at, about.at) + " ago", or_none(each->reason), printable(each->why)});
  lines.emplace_back();
  lines.emplace_back("Last attempts:");
  add_table(lines, rows);
}

std::string pods_head(const std::vector<PodView>& pods) {
  std::map<PodFate, std::size_t> counts;
  for (const PodView& pod : pods) ++counts[pod.fate];
  std::vector<std::string> parts;
  parts.reserve(counts.size());
  for (const auto& [fate, count] : counts) parts.push_back(fmt::format("{} {}", count, to_string(fate)));
  return "Pods (if the agent drained the node now, with the default policy and in this order" +
         (parts.empty() ? "): none" : "; " + joined(parts, ", ") + "):");
}

std::string budget_cell(const Explanation& about, const PodView& pod) {
  if (about.budgets_problem) return "<unknown>";
  std::vector<std::string> parts;
  parts.reserve(pod.budgets.size());
  for (const PodBudget& budget : pod.budgets)
    parts.push_back(
        fmt::format("{} (allows {}, {}/{} healthy)", budget.key, budget.allowed, budget.healthy, budget.desired));
  return or_none(joined(parts, ", "));
}

// Appends whether pods fit on other nodes. Only pods that are evicted and replaced elsewhere have such a result.
void add_fits(Lines& lines, const Explanation& about) {
  if (!about.fit_asked || about.pods_problem) return;
  lines.emplace_back();
  if (about.fits_problem) {
    lines.push_back("Fit elsewhere: unknown for all of its pods: " + *about.fits_problem);
    return;
  }
  std::vector<Cells> rows{{"POD", "FITS", "NODE", "PLUGINS", "MESSAGE"}};
  for (const PodView& pod : about.pods)
    if (pod.fit)
      rows.push_back({pod.key, std::string(to_string(pod.fit->fit)), or_none(pod.fit->node),
                      or_none(joined(pod.fit->plugins, ",")), printable(pod.fit->message)});
  lines.emplace_back(rows.size() == 1
                         ? "Fit elsewhere: no evicted pod would be created again"
                         : "Fit elsewhere (largest pods first; assumes replacements like the present pods):");
  if (rows.size() > 1) add_table(lines, rows);
}

void add_pods(Lines& lines, const Explanation& about) {
  lines.emplace_back();
  if (about.pods_problem) {
    lines.push_back("Pods: cannot be read: " + *about.pods_problem);
    return;
  }
  lines.push_back(pods_head(about.pods));
  std::vector<Cells> rows{{"POD", "VERDICT", "EVICTABLE", "BUDGETS", "REASON", "MESSAGE"}};
  for (const PodView& pod : about.pods)
    rows.push_back({pod.key, std::string(to_string(pod.fate)), or_none(std::string(to_string(pod.evictable))),
                    budget_cell(about, pod), or_none(pod.reason), printable(pod.message)});
  if (rows.size() > 1) add_table(lines, rows);
}

void add_budgets(Lines& lines, const Explanation& about) {
  if (about.budgets_problem) {
    lines.emplace_back();
    lines.push_back("Budgets: cannot be read, so more pods may be blocked than shown: " + *about.budgets_problem);
  }
  if (about.budgets.empty()) return;
  lines.emplace_back();
  lines.emplace_back("Budgets:");
  std::vector<Cells> rows{{"PODDISRUPTIONBUDGET", "ALLOWED", "HEALTHY", "NEEDED", "PODS-HERE"}};
  for (const BudgetView& budget : about.budgets)
    rows.push_back({budget.key, std::to_string(budget.allowed), std::to_string(budget.healthy),
                    std::to_string(budget.needed), std::to_string(budget.pods)});
  add_table(lines, rows);
}

void add_findings(Lines& lines, const Explanation& about) {
  if (!about.findings.empty()) {
    lines.emplace_back();
    lines.emplace_back("Findings:");
    std::vector<Cells> rows{{"CODE", "ABOUT", "MESSAGE"}};
    for (const drain::DiagnosisFact& finding : about.findings)
      rows.push_back({finding.code, printable(finding.subject), printable(finding.message)});
    add_table(lines, rows);
  }
  if (about.not_known.empty()) return;
  lines.emplace_back();
  lines.emplace_back("Unknown:");
  for (const std::string& problem : about.not_known) lines.push_back("  - " + problem);
}

}  // namespace

std::vector<std::string> explanation_text(const Explanation& about) {
  Lines lines;
  add_facts(lines, about);
  lines.emplace_back();
  lines.emplace_back("Why not now:");
  for (const std::string& reason : about.why) lines.push_back("  - " + printable(reason));
  lines.emplace_back();
  lines.emplace_back("Gates:");
  std::vector<Cells> rows{{"GATE", "STATE", "MESSAGE"}};
  for (const GateView& gate : about.gates)
    rows.push_back({gate.name, std::string(to_string(gate.state)), printable(gate.message)});
  add_table(lines, rows);
  add_attempts(lines, about);
  add_pods(lines, about);
  add_fits(lines, about);
  add_budgets(lines, about);
  add_findings(lines, about);
  return lines;
}

}  // namespace haulout::cli
