#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/process/process.hpp"
#include "audit/findings.hpp"
#include "base/option.hpp"
#include "cli/audit/audit_report.hpp"
#include "k8s/requests.hpp"

namespace haulout::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string level_of(audit::Severity severity) {
  switch (severity) {
    case audit::Severity::blocks: return "error";
    case audit::Severity::risk: return "warning";
    case audit::Severity::note: return "note";
  }
  return "none";
}

// Returns the path as a reference that is a valid URI. The URL of a server is one already.
std::string uri_of(const std::string& source) {
  if (source.find("://") != std::string::npos) return source;
  std::string uri;
  for (const std::string& part : split_at(source, '/'))
    uri += (uri.empty() && !source.starts_with('/') ? "" : "/") + k8s::percent_encode(part);
  return source.starts_with('/') ? uri.substr(1) : uri;
}

Json rules() {
  Json rules = Json::array();
  for (const audit::FindingKind& kind : audit::finding_kinds())
    rules.push_back({{"id", kind.id}, {"shortDescription", {{"text", kind.meaning}}}});
  return rules;
}

std::size_t index_of(const std::string& id) {
  const auto& kinds = audit::finding_kinds();
  return static_cast<std::size_t>(std::ranges::find(kinds, id, &audit::FindingKind::id) - kinds.begin());
}

Json result_of(const audit::Owner& owner, const audit::Finding& finding, const std::string& uri) {
  const std::string way_out = finding.way_out.empty() ? "" : "; way out: " + finding.way_out;
  return {{"ruleId", finding.id},
          {"ruleIndex", index_of(finding.id)},
          {"level", level_of(finding.severity)},
          {"message", {{"text", fmt::format("{}: {}{}", owner.name.text(), finding.text, way_out)}}},
          {"locations",
           {{{"physicalLocation", {{"artifactLocation", {{"uri", uri}}}}},
             {"logicalLocations", {{{"fullyQualifiedName", owner.name.text()}, {"kind", "resource"}}}}}}},
          {"partialFingerprints", {{"findingKey/v1", finding.key}}},
          {"properties", {{"team", owner.team}, {"nodes", finding.nodes}, {"pods", finding.pods}}}};
}

}  // namespace

std::string audit_sarif(const audit::Report& report) {
  Json results = Json::array();
  const std::string uri = uri_of(report.source);
  for (const audit::Owner& owner : report.owners)
    for (const audit::Finding& finding : owner.findings)
      results.push_back(result_of(owner, finding, finding.file.empty() ? uri : uri_of(finding.file)));
  Json driver = {{"name", "haulout audit"}, {"version", std::string(agent::version())}, {"rules", rules()}};
  const Json json = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                     {"version", "2.1.0"},
                     {"runs", {{{"tool", {{"driver", std::move(driver)}}}, {"results", std::move(results)}}}}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace haulout::cli
