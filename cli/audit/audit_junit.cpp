#include <fmt/format.h>
#include <set>

#include "base/text.hpp"
#include "cli/audit/audit_report.hpp"

namespace haulout::cli {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  return result;
}

std::string details(const audit::Finding& finding) {
  std::string text = escaped(finding.text);
  if (!finding.way_out.empty()) text += "\nway out: " + escaped(finding.way_out);
  if (!finding.nodes.empty()) text += "\nnodes: " + escaped(joined(finding.nodes, ", "));
  if (!finding.pods.empty()) text += "\npods: " + escaped(joined(finding.pods, ", "));
  return text;
}

std::string case_of(const audit::Owner& owner, const audit::Finding& finding, bool failed) {
  const std::string head = fmt::format(R"(    <testcase classname="{}" name="{} {}">)", escaped(owner.name.text()),
                                       escaped(finding.id), escaped(finding.object));
  return failed ? fmt::format("{}<failure type=\"{}\" message=\"{}\">{}</failure></testcase>\n", head,
                              to_string(finding.severity), escaped(finding.text), details(finding))
                : fmt::format("{}<system-out>{}: {}</system-out></testcase>\n", head, to_string(finding.severity),
                              details(finding));
}

}  // namespace

std::string audit_junit(const audit::Report& report, audit::Severity fail_on) {
  std::string cases;
  std::size_t tests = 0, failures = 0;
  std::set<std::string> failed_nodes;
  for (const audit::Owner& owner : report.owners)
    for (const audit::Finding& finding : owner.findings) {
      const bool failed = finding.severity >= fail_on;
      if (failed) failed_nodes.insert(finding.nodes.begin(), finding.nodes.end());
      cases += case_of(owner, finding, failed);
      ++tests;
      failures += failed ? 1 : 0;
    }
  for (const audit::NodeResult& node : report.nodes)
    if (!failed_nodes.contains(node.name)) {
      cases += fmt::format("    <testcase classname=\"nodes\" name=\"node/{} {}\"/>\n", escaped(node.name),
                           to_string(node.verdict));
      ++tests;
    }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "  <testsuite name=\"haulout audit\" tests=\"{}\" failures=\"{}\">\n{}  </testsuite>\n</testsuites>\n",
      tests, failures, cases);
}

}  // namespace haulout::cli
