#include <nlohmann/json.hpp>

#include "agent/rehearsal/rehearsal_text.hpp"
#include "agent/report_json.hpp"

namespace haulout::agent {
namespace {

using Json = nlohmann::ordered_json;

double seconds(Duration duration) {
  return std::chrono::duration<double>(std::chrono::round<std::chrono::milliseconds>(duration)).count();
}

Json waits_of(const Timeline& timeline) {
  Json result = Json::array();
  for (const Timeline::Row& row : timeline.rows())
    for (const Timeline::Wait& wait : row.waits)
      result.push_back({{"node", row.node},
                        {"pod", row.pod},
                        {"seconds", seconds(wait.until.value_or(timeline.last()) - wait.from)},
                        {"reason", wait.reason},
                        {"message", wait.message}});
  return result;
}

}  // namespace

std::string rehearsal_json(const Rehearsal& rehearsal, const Assumptions& assumptions) {
  Json drains = Json::array();
  for (const drain::Report& report : rehearsal.drains) drains.push_back(Json::parse(report_json(report)));
  Json no_room = Json::array();
  for (const NoRoom& pod : rehearsal.no_room)
    no_room.push_back({{"pod", pod.pod}, {"controller", pod.controller}, {"message", pod.message}});
  Json assumed = {{"readyAfterSeconds", seconds(assumptions.ready_after)}, {"terminateWithinSeconds", nullptr}};
  if (assumptions.terminate_within) assumed["terminateWithinSeconds"] = seconds(*assumptions.terminate_within);
  const Json report = {{"apiVersion", "haulout.dev/v1alpha1"}, {"kind", "RehearsalReport"},
                       {"seconds", seconds(rehearsal.took)},   {"assumptions", std::move(assumed)},
                       {"drains", std::move(drains)},          {"waits", waits_of(rehearsal.timeline)},
                       {"noRoom", std::move(no_room)},         {"notWeighed", rehearsal.not_weighed}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace haulout::agent
