#include "agent/node/record.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/plain_text.hpp"
#include "base/text.hpp"

namespace haulout::agent {

std::string restart_shown(const BootMarks& before, const BootMarks& after, const std::string& own_boot_id) {
  const std::string& now = after.kubelet_boot_id;
  if (!before.kubelet_boot_id.empty() && !now.empty() && now != before.kubelet_boot_id && now != own_boot_id)
    return "its kubelet reports another boot id";
  if (!before.start.source.empty() && after.start.source == before.start.source && after.start.at != before.start.at)
    return "its process 1 is a different one";
  return "";
}

bool has_foreign_boot_id(const k8s::Node& node, const std::string& own_boot_id) {
  return node.ready && !node.boot_id.empty() && !own_boot_id.empty() && node.boot_id != own_boot_id;
}

std::string foreign_boot_id(const k8s::Node& node, const std::string& own_boot_id) {
  return fmt::format(
      "the agent reads boot id {}, but the kubelet of node {} reports {}, so the agent would not notice a reboot. Run "
      "the agent on its own node, and let it read this machine's boot id (unit in a container: ProtectProc=default, "
      "ProtectKernelTunables=no, ProtectControlGroups=no)",
      printable(own_boot_id), printable(node.name), printable(node.boot_id));
}

std::string unchanged_boot_id(const std::string& shown, const std::string& node) {
  return fmt::format(
      "the machine was rebooted ({}), but the agent reads the same boot id as before, as in a container, so it cannot "
      "verify the update. Check the node, then remove its record: kubectl annotate node {} haulout.dev/record-",
      shown, node);
}

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
