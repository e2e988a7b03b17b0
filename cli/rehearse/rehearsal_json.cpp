#include <nlohmann/json.hpp>

#include "cli/drain/report_json.hpp"
#include "cli/rehearse/comparison_report.hpp"
#include "cli/rehearse/rehearsal_text.hpp"
#include "k8s/codec.hpp"

namespace haulout::cli {
namespace {

using Json = nlohmann::ordered_json;

double seconds(Duration duration) {
  return std::chrono::duration<double>(std::chrono::round<std::chrono::milliseconds>(duration)).count();
}

Json time_of(const std::optional<WallTime>& time) {
  return time ? Json(k8s::format_time(*time)) : Json(nullptr);
}

Json waits_of(const rehearse::Timeline& timeline) {
  Json result = Json::array();
  for (const rehearse::Timeline::Row& row : timeline.rows())
    for (const rehearse::Timeline::Wait& wait : row.waits)
      result.push_back({{"node", row.node},
                        {"pod", row.pod},
                        {"seconds", seconds(wait.until.value_or(timeline.last()) - wait.from)},
                        {"reason", wait.reason},
                        {"message", wait.message}});
  return result;
}

Json broken_gangs_of(const rehearse::Timeline& timeline) {
  Json result = Json::array();
  for (const rehearse::Timeline::BrokenGang& broken : timeline.broken_gangs())
    result.push_back({{"node", broken.node}, {"gang", broken.gang}, {"message", broken.message}});
  return result;
}

Json no_room_of(const std::vector<rehearse::NoRoom>& pods) {
  Json result = Json::array();
  for (const rehearse::NoRoom& pod : pods)
    result.push_back(
        {{"pod", pod.pod}, {"controller", pod.controller}, {"message", pod.message}, {"preemptsOn", pod.preempts_on}});
  return result;
}

Json assumed_of(const rehearse::Assumptions& assumptions, const std::vector<std::string>& all) {
  Json assumed = {{"readyAfterSeconds", seconds(assumptions.ready_after)},
                  {"terminateWithinSeconds", nullptr},
                  {"detachWithinSeconds", seconds(assumptions.detach_within)},
                  {"attachWithinSeconds", seconds(assumptions.attach_within)}};
  if (assumptions.terminate_within) assumed["terminateWithinSeconds"] = seconds(*assumptions.terminate_within);
  assumed["all"] = all;
  return assumed;
}

std::string_view name_of(rehearse::FleetEnd end) {
  switch (end) {
    case rehearse::FleetEnd::over: return "over";
    case rehearse::FleetEnd::stuck: return "stuck";
    case rehearse::FleetEnd::horizon: return "horizon";
  }
  return "";
}

Json node_of(const rehearse::FleetNode& node, WallTime end) {
  if (!node.left_out.empty()) return {{"node", node.name}, {"updated", false}, {"leftOut", node.left_out}};
  Json phases = Json::array();
  for (const rehearse::FleetPhase& phase : node.phases)
    phases.push_back(
        {{"state", to_string(phase.state)}, {"from", time_of(phase.from)}, {"until", time_of(phase.until)}});
  return {{"node", node.name},
          {"updated", node.updated && node.state == agent::State::idle},
          {"state", to_string(node.state)},
          {"reason", node.reason},
          {"message", node.message},
          {"turnAt", time_of(turn_of(node))},
          {"drainSeconds", seconds(drained_in(node, end))},
          {"outOfServiceSeconds", seconds(out_of_service(node, end))},
          {"heldUpBy", node.holds_up},
          {"phases", std::move(phases)}};
}

Json evictions_in(const std::vector<rehearse::OwnerCourse>& owners) {
  const rehearse::Evictions sum = rehearse::evictions_of(owners);
  Json worst = nullptr;
  if (sum.most != nullptr)
    worst = {{"owner", sum.most->owner},
             {"evictions", sum.most->evictions},
             {"pods", sum.most->pods},
             {"perPod", rehearse::per_pod(sum.most->evictions, sum.most->pods)}};
  return {{"evictions", sum.evictions},
          {"pods", sum.pods},
          {"perPod", rehearse::per_pod(sum.evictions, sum.pods)},
          {"worst", std::move(worst)}};
}

Json owners_of(const std::vector<rehearse::OwnerCourse>& owners) {
  Json result = Json::array();
  for (const rehearse::OwnerCourse& owner : owners)
    result.push_back({{"owner", owner.owner},
                      {"replicas", owner.replicas},
                      {"replaced", owner.is_replaced},
                      {"budget", owner.has_budget},
                      {"harmed", is_harmed(owner)},
                      {"readyBefore", owner.ready},
                      {"leastReady", owner.least_ready},
                      {"leastReadyAt", time_of(owner.least_at)},
                      {"pods", owner.pods},
                      {"evictions", owner.evictions},
                      {"podsWithoutRoom", owner.without_room},
                      {"longestWithoutRoomSeconds", seconds(owner.longest_without_room)}});
  return result;
}

Json harmed_budgets_of(const std::vector<rehearse::BudgetCourse>& budgets) {
  Json result = Json::array();
  for (const rehearse::BudgetCourse& budget : budgets)
    if (is_harmed(budget))
      result.push_back({{"budget", budget.budget},
                        {"mustKeep", budget.desired},
                        {"healthyBefore", budget.healthy},
                        {"leastHealthy", budget.least_healthy},
                        {"leastHealthyAt", time_of(budget.least_at)}});
  return result;
}

Json objections_of(const std::vector<rehearse::Objection>& objections) {
  Json result = Json::array();
  for (const rehearse::Objection& objection : objections)
    result.push_back(
        {{"kind", to_string(objection.kind)}, {"subject", objection.subject}, {"message", objection.text}});
  return result;
}

Json setting_of(const Comparison& comparison, const ComparedSetting& setting) {
  const rehearse::FleetFigures& figures = setting.figures;
  return {{"option", comparison.option},
          {"value", setting.value},
          {"end", name_of(figures.end)},
          {"seconds", figures.took ? Json(seconds(*figures.took)) : Json(nullptr)},
          {"nodes", figures.nodes},
          {"notUpdated", figures.unfinished},
          {"mostOutOfService", figures.most_out},
          {"evictions", evictions_in(figures.owners)},
          {"podsWithoutRoom", figures.without_room},
          {"longestWithoutRoomSeconds", seconds(figures.longest_without_room)},
          {"owners", owners_of(figures.owners)},
          {"harmedBudgets", harmed_budgets_of(figures.harmed_budgets)}};
}

Json plan_of(const Comparison& comparison) {
  if (!comparison.choice) return nullptr;
  const rehearse::Choice& choice = *comparison.choice;
  const auto& settings = comparison.settings;
  const auto named = [&](std::optional<std::size_t> index) {
    return index ? Json(settings[*index].value) : Json(nullptr);
  };
  // Why there is no faster one, or none at all.
  const std::size_t refused = choice.best ? choice.next_faster.value_or(*choice.best) : choice.reference;
  return {{"option", comparison.option},
          {"value", named(choice.best)},
          {"slowest", named(choice.reference)},
          {"nextFaster", named(choice.next_faster)},
          {"objections", objections_of(objections(settings[refused].figures, settings[choice.reference].figures))}};
}

std::string written(const Json& report) {
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace

std::string rehearsal_json(const rehearse::Rehearsal& rehearsal, const rehearse::Assumptions& assumptions) {
  Json drains = Json::array();
  for (const drain::Report& report : rehearsal.drains) drains.push_back(Json::parse(report_json(report)));
  return written({{"apiVersion", api_version},
                  {"kind", "RehearsalReport"},
                  {"seconds", seconds(rehearsal.took)},
                  {"assumptions", assumed_of(assumptions, rehearsal.assumed)},
                  {"drains", std::move(drains)},
                  {"waits", waits_of(rehearsal.timeline)},
                  {"brokenGangs", broken_gangs_of(rehearsal.timeline)},
                  {"noRoom", no_room_of(rehearsal.no_room)},
                  {"notWeighed", rehearsal.not_weighed}});
}

std::string fleet_json(const rehearse::FleetRehearsal& rehearsal, const rehearse::FleetInput& input) {
  Json nodes = Json::array();
  for (const rehearse::FleetNode& node : rehearsal.nodes) nodes.push_back(node_of(node, rehearsal.ended));
  Json assumed = assumed_of(input.assumptions, rehearsal.assumed);
  assumed["rebootSeconds"] = seconds(input.reboot_time);
  return written({{"apiVersion", api_version},
                  {"kind", "FleetRehearsalReport"},
                  {"end", name_of(rehearsal.end)},
                  {"startedAt", k8s::format_time(rehearsal.began)},
                  {"seconds", seconds(rehearsal.ended - rehearsal.began)},
                  {"mostOutOfService", rehearsal.most_out},
                  {"assumptions", std::move(assumed)},
                  {"nodes", std::move(nodes)},
                  {"waits", waits_of(rehearsal.timeline)},
                  {"brokenGangs", broken_gangs_of(rehearsal.timeline)},
                  {"noRoom", no_room_of(rehearsal.no_room)},
                  {"notWeighed", rehearsal.not_weighed},
                  {"evictions", evictions_in(rehearsal.owners)},
                  {"owners", owners_of(rehearsal.owners)},
                  {"harmedBudgets", harmed_budgets_of(rehearsal.budgets)}});
}

std::string comparison_json(const Comparison& comparison) {
  Json settings = Json::array();
  for (const ComparedSetting& setting : comparison.settings) settings.push_back(setting_of(comparison, setting));
  Json assumed = assumed_of(comparison.input.assumptions, comparison.assumed);
  assumed["rebootSeconds"] = seconds(comparison.input.reboot_time);
  return written({{"apiVersion", api_version},
                  {"kind", "FleetComparison"},
                  {"startedAt", k8s::format_time(comparison.settings.front().figures.began)},
                  {"assumptions", std::move(assumed)},
                  {"leftOut", comparison.settings.front().figures.left_out},
                  {"settings", std::move(settings)},
                  {"plan", plan_of(comparison)}});
}

}  // namespace haulout::cli
