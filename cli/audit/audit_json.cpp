#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/audit/audit_report.hpp"
#include "cli/drain/report_json.hpp"
#include "k8s/codec.hpp"

namespace haulout::cli {
namespace {

using Json = nlohmann::ordered_json;

double seconds(Duration duration) {
  return std::chrono::duration<double>(std::chrono::round<std::chrono::milliseconds>(duration)).count();
}

void set(Json& object, const char* key, const std::optional<Duration>& duration) {
  if (duration) object[key] = seconds(*duration);
}

Json step_of(const audit::Step& step) {
  Json json = {{"pod", step.pod}, {"owner", step.owner}};
  set(json, "waitFrom", step.wait_from);
  set(json, "evicted", step.evicted);
  set(json, "gone", step.gone);
  return json;
}

Json node_of(const audit::NodeResult& node) {
  Json json = {{"name", node.name},         {"pool", node.pool}, {"ready", node.ready},
               {"cordoned", node.cordoned}, {"pods", node.pods}, {"verdict", to_string(node.verdict)}};
  set(json, "seconds", node.took);
  json["blockedBy"] = Json::array();
  for (const audit::Culprit& culprit : node.blocked_by)
    json["blockedBy"].push_back(
        {{"pod", culprit.pod}, {"owner", culprit.owner}, {"reason", culprit.reason}, {"text", culprit.text}});
  json["withoutRoom"] = node.without_room;
  json["timeline"] = Json::array();
  for (const audit::Step& step : node.timeline) json["timeline"].push_back(step_of(step));
  return json;
}

Json finding_of(const audit::Finding& finding) {
  Json json = {{"id", finding.id},          {"severity", to_string(finding.severity)},
               {"object", finding.object},  {"text", finding.text},
               {"wayOut", finding.way_out}, {"nodes", finding.nodes},
               {"pods", finding.pods},      {"key", finding.key}};
  if (!finding.file.empty()) json["file"] = finding.file;
  return json;
}

Json owner_of(const audit::Owner& owner) {
  Json findings = Json::array();
  for (const audit::Finding& finding : owner.findings) findings.push_back(finding_of(finding));
  return {{"namespace", owner.name.ns},     {"team", owner.team}, {"kind", owner.name.kind},
          {"name", owner.name.name},        {"pods", owner.pods}, {"worst", to_string(owner.worst())},
          {"findings", std::move(findings)}};
}

Json summary_of(const audit::Report& report) {
  using audit::Severity;
  using audit::Verdict;
  return {{"nodes", report.nodes.size()},
          {"pods", report.pods},
          {"owners", report.owners_in_all},
          {"nodesThatDrain", report.count(Verdict::drains) + report.count(Verdict::drains_without_room)},
          {"nodesBlocked", report.count(Verdict::blocked)},
          {"nodesNotRehearsed", report.count(Verdict::not_rehearsed)},
          {"findings",
           {{"blocks", report.count(Severity::blocks)},
            {"risk", report.count(Severity::risk)},
            {"note", report.count(Severity::note)}}},
          {"findingsInBaseline", report.known}};
}

audit::Severity severity_of(const nlohmann::json& name) {
  for (const auto severity : {audit::Severity::note, audit::Severity::risk})
    if (name == to_string(severity)) return severity;
  return audit::Severity::blocks;
}

}  // namespace

std::string audit_json(const audit::Report& report) {
  Json nodes = Json::array(), owners = Json::array();
  for (const audit::NodeResult& node : report.nodes) nodes.push_back(node_of(node));
  for (const audit::Owner& owner : report.owners) owners.push_back(owner_of(owner));
  const Json json = {{"apiVersion", api_version},
                     {"kind", "Audit"},
                     {"time", k8s::format_time(report.time)},
                     {"source", report.source},
                     {"manifests", report.of_manifests},
                     {"assumed", report.assumed},
                     {"summary", summary_of(report)},
                     {"nodes", std::move(nodes)},
                     {"owners", std::move(owners)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<audit::Baseline> read_baseline(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto member = [](const nlohmann::json& object, const char* key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    return object.is_object() && found != object.end() ? *found : nlohmann::json();
  };
  const auto owners = member(json, "owners");
  if (member(json, "kind") != "Audit" || !owners.is_array())
    return Error(Errc::decode, "it is not the output of haulout audit -o json");
  audit::Baseline baseline;
  for (const auto& owner : owners)
    for (const auto& finding : member(owner, "findings")) {
      const auto key = member(finding, "key");
      if (!key.is_string()) continue;
      const audit::Severity severity = severity_of(member(finding, "severity"));
      const auto [known, is_new] = baseline.try_emplace(key.get<std::string>(), severity);
      if (!is_new) known->second = std::max(known->second, severity);
    }
  return baseline;
}

}  // namespace haulout::cli
