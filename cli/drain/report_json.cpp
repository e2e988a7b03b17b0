#include "cli/drain/report_json.hpp"

#include <nlohmann/json.hpp>

#include "k8s/codec.hpp"

namespace haulout::cli {
namespace {

using Json = nlohmann::ordered_json;

Json time_json(const std::optional<WallTime>& time) {
  return time ? Json(k8s::format_micro_time(*time)) : Json(nullptr);
}

Json pod_json(const drain::PodReport& pod) {
  return {{"namespace", pod.ns},
          {"name", pod.name},
          {"uid", pod.uid},
          {"controller", pod.controller},
          {"verdict", drain::to_string(pod.verdict)},
          {"outcome", drain::to_string(pod.outcome)},
          {"reason", pod.reason},
          {"message", pod.message},
          {"attempts", pod.attempts},
          {"evictedAt", time_json(pod.evicted_at)},
          {"vanishedAt", time_json(pod.vanished_at)}};
}

Json volume_json(const drain::VolumeReport& volume) {
  Json json = {{"volume", volume.volume},
               {"claim", volume.claim},
               {"driver", volume.driver},
               {"attachment", volume.attachment},
               {"outcome", drain::to_string(volume.outcome)},
               {"message", volume.message},
               {"unusedAt", time_json(volume.unused_at)},
               {"detachedAt", time_json(volume.detached_at)}};
  if (volume.reattach == drain::Reattach::none) return json;
  json["reattach"] = drain::to_string(volume.reattach);
  json["attachedTo"] = volume.attached_to;
  return json;
}

Json fit_json(const placement::PodFit& fit) {
  return {{"pod", fit.pod},   {"uid", fit.uid},         {"fit", placement::to_string(fit.fit)},
          {"node", fit.node}, {"plugins", fit.plugins}, {"message", fit.message}};
}

Json diagnosis_json(const drain::Diagnosis& diagnosis) {
  return {{"code", diagnosis.code},
          {"subject", diagnosis.subject},
          {"message", diagnosis.message},
          {"since", k8s::format_micro_time(diagnosis.since)}};
}

Json cordon_json(const drain::CordonReport& cordon) {
  return {{"before", cordon.before},
          {"after", cordon.known ? Json(cordon.after) : Json(nullptr)},
          {"owner", cordon.known ? cordon.owner : ""}};
}

Json retirement_json(const drain::RetirementReport& retirement) {
  Json leftovers = Json::array();
  for (const drain::Leftover& left : retirement.leftovers)
    leftovers.push_back({{"what", left.what}, {"message", left.why}});
  return {{"outcome", drain::to_string(retirement.outcome)},
          {"deletion", drain::to_string(retirement.deletion)},
          {"message", retirement.message},
          {"leftovers", std::move(leftovers)}};
}

Json report_object(const drain::Report& report) {
  Json pods = Json::array();
  for (const drain::PodReport& pod : report.pods) pods.push_back(pod_json(pod));
  Json volumes = Json::array();
  for (const drain::VolumeReport& volume : report.volumes) volumes.push_back(volume_json(volume));
  Json diagnoses = Json::array();
  for (const drain::Diagnosis& diagnosis : report.diagnoses) diagnoses.push_back(diagnosis_json(diagnosis));
  Json fits = Json::array();
  for (const placement::PodFit& fit : report.fits) fits.push_back(fit_json(fit));
  Json by_verb = Json::object();
  for (const auto& [verb, count] : report.requests.by_verb) by_verb[verb] = count;
  Json json = {{"apiVersion", api_version},
               {"kind", "DrainReport"},
               {"node", report.node},
               {"outcome", drain::to_string(report.outcome)},
               {"message", report.message},
               {"connectionFailed", report.connection_failed},
               {"startedAt", k8s::format_micro_time(report.started_at)},
               {"finishedAt", k8s::format_micro_time(report.finished_at)},
               {"cordon", cordon_json(report.cordon)},
               {"pods", std::move(pods)},
               {"volumes", std::move(volumes)},
               {"fits", std::move(fits)},
               {"diagnoses", std::move(diagnoses)},
               {"requests", {{"total", report.requests.total}, {"byVerb", std::move(by_verb)}}}};
  if (report.retirement) json["retirement"] = retirement_json(*report.retirement);
  return json;
}

// Serializes with replacement characters: strings from the API server may contain bytes that are not UTF-8, and the
// default error handler of dump() would throw.
std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string report_json(const drain::Report& report) {
  return dumped(report_object(report), 2) + '\n';
}

std::string report_json(const drain::Report& report, const std::vector<drain::CleanUpProgram>& clean_up) {
  Json json = report_object(report);
  Json programs = Json::array();
  for (const drain::CleanUpProgram& program : clean_up)
    programs.push_back(
        {{"name", program.name}, {"result", drain::to_string(program.result)}, {"message", program.message}});
  if (report.retirement) json["retirement"]["cleanUp"] = std::move(programs);
  return dumped(json, 2) + '\n';
}

std::string report_list_json(const std::vector<drain::Report>& reports) {
  Json items = Json::array();
  for (const drain::Report& report : reports) items.push_back(report_object(report));
  const Json list = {{"apiVersion", api_version}, {"kind", "DrainReportList"}, {"items", std::move(items)}};
  return dumped(list, 2) + '\n';
}

std::string event_json(const drain::Event& event) {
  Json json = {{"type", drain::to_string(event.type)},
               {"at", k8s::format_micro_time(event.at)},
               {"node", event.node},
               {"message", event.message},
               {"progress",
                {{"toEvict", event.progress.to_evict},
                 {"vanished", event.progress.vanished},
                 {"terminating", event.progress.terminating},
                 {"waiting", event.progress.waiting},
                 {"skipped", event.progress.skipped},
                 {"detaching", event.progress.detaching}}}};
  if (event.pod != nullptr) json["pod"] = pod_json(*event.pod);
  if (event.volume != nullptr) json["volume"] = volume_json(*event.volume);
  if (event.diagnosis != nullptr) json["diagnosis"] = diagnosis_json(*event.diagnosis);
  return dumped(json, -1);
}

}  // namespace haulout::cli
