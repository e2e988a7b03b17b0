#include <fmt/format.h>
#include <map>
#include <set>

#include "base/text.hpp"
#include "base/xml.hpp"
#include "cli/audit/audit_report.hpp"

namespace haulout::cli {
namespace {

std::string details(const audit::Finding& finding) {
  std::string text = xml_escaped(finding.text);
  if (!finding.way_out.empty()) text += "\nway out: " + xml_escaped(finding.way_out);
  if (!finding.nodes.empty()) text += "\nnodes: " + xml_escaped(joined(finding.nodes, ", "));
  if (!finding.pods.empty()) text += "\npods: " + xml_escaped(joined(finding.pods, ", "));
  return text;
}

std::string case_of(const audit::Owner& owner, const audit::Finding& finding, bool failed) {
  const std::string head = fmt::format(R"(    <testcase classname="{}" name="{} {}">)", xml_escaped(owner.name.text()),
                                       xml_escaped(finding.id), xml_escaped(finding.object));
  return failed ? fmt::format("{}<failure type=\"{}\" message=\"{}\">{}</failure></testcase>\n", head,
                              to_string(finding.severity), xml_escaped(finding.text), details(finding))
                : fmt::format("{}<system-out>{}: {}</system-out></testcase>\n", head, to_string(finding.severity),
                              details(finding));
}

// Programs that read the file follow a test from run to run by its name. So each node has a test in each run, and what
// changes from run to run is not in the name.
std::string case_of(const audit::NodeResult& node, const std::set<std::string>& failed_by) {
  const std::string head = fmt::format(R"(    <testcase classname="nodes" name="node/{}">)", xml_escaped(node.name));
  const std::string_view verdict = to_string(node.verdict);
  if (failed_by.empty()) return fmt::format("{}<system-out>{}</system-out></testcase>\n", head, verdict);
  const std::string why = xml_escaped(joined(std::vector<std::string>(failed_by.begin(), failed_by.end()), ", "));
  return fmt::format("{}<failure type=\"{}\" message=\"{}\"></failure></testcase>\n", head, verdict, why);
}

}  // namespace

std::string audit_junit(const audit::Report& report, audit::Severity fail_on) {
  std::string cases;
  std::size_t tests = 0, failures = 0;
  std::map<std::string, std::set<std::string>> failed_nodes;  // with the findings that fail
  for (const audit::Owner& owner : report.owners)
    for (const audit::Finding& finding : owner.findings) {
      const bool failed = finding.severity >= fail_on;
      if (failed)
        for (const std::string& node : finding.nodes)
          failed_nodes[node].insert(fmt::format("{} of {}", finding.id, owner.name.text()));
      cases += case_of(owner, finding, failed);
      ++tests;
      failures += failed ? 1 : 0;
    }
  for (const audit::NodeResult& node : report.nodes) {
    const auto failed = failed_nodes.find(node.name);
    cases += case_of(node, failed == failed_nodes.end() ? std::set<std::string>() : failed->second);
    ++tests;
    failures += failed == failed_nodes.end() ? 0 : 1;
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "  <testsuite name=\"haulout audit\" tests=\"{}\" failures=\"{}\">\n{}  </testsuite>\n</testsuites>\n",
      tests, failures, cases);
}

}  // namespace haulout::cli
