#include "agent/node/hook_record.hpp"

#include <algorithm>

#include "base/plain_text.hpp"

namespace haulout::agent {

bool has_passed(const Record& record, HookPoint point) {
  return std::find(record.hooks_passed.begin(), record.hooks_passed.end(), to_string(point)) !=
         record.hooks_passed.end();
}

HookPoint hook_point_at(const Record& record) {
  switch (record.state) {
    case State::draining:
      return has_passed(record, HookPoint::before_drain) ? HookPoint::after_drain : HookPoint::before_drain;
    case State::soaking: return HookPoint::before_release;
    case State::degraded: return record.uncordon ? HookPoint::before_release : HookPoint::after_boot;
    default: return HookPoint::after_boot;
  }
}

std::string asked_ticket(const Record& record) {
  return record.hooks_asked ? hook_ticket(hook_point_at(record), *record.hooks_asked) : std::string();
}

HookEnvironment hook_environment(const std::string& node, HookPoint point, const Record& record) {
  std::string reasons;
  for (const std::string& reason : record.reasons) reasons += (reasons.empty() ? "" : "\n") + one_line(reason);
  return {{"HAULOUT_NODE", node},
          {"HAULOUT_POINT", std::string(to_string(point))},
          {"HAULOUT_STATE", std::string(to_string(record.state))},
          {"HAULOUT_FROM_VERSION", one_line(record.from)},
          {"HAULOUT_TO_VERSION", one_line(record.to)},
          {"HAULOUT_REASONS", std::move(reasons)}};
}

}  // namespace haulout::agent
