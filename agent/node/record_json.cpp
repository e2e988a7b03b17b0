#include "agent/node/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/plain_text.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {

std::string restart_shown(const BootMarks& before, const BootMarks& after, const std::string& own_boot_id) {
  const std::string& now = after.kubelet_boot_id;
  if (!before.kubelet_boot_id.empty() && !now.empty() && now != before.kubelet_boot_id && now != own_boot_id)
    return "its kubelet reports another boot id";
  if (!before.start.source.empty() && after.start.source == before.start.source && after.start.at != before.start.at)
    return "its process 1 has another start time";
  return "";
}

bool has_foreign_boot_id(const k8s::Node& node, const std::string& own_boot_id) {
  return node.ready && !node.boot_id.empty() && !own_boot_id.empty() && node.boot_id != own_boot_id;
}

std::string foreign_boot_id(const k8s::Node& node, const std::string& own_boot_id) {
  return fmt::format(
      "the agent reads boot id {}, but the kubelet of node {} reports {}, so the agent would not notice a reboot. "
      "Check --node-name: the agent must run on that node. If the machine is itself a container (LXC, nspawn), set "
      "ProtectProc=default, ProtectKernelTunables=no and ProtectControlGroups=no in the agent's systemd unit, so that "
      "it reads the machine's own boot id",
      printable(own_boot_id), printable(node.name), printable(node.boot_id));
}

std::string unchanged_boot_id(const std::string& shown, const std::string& node) {
  return fmt::format(
      "the machine was rebooted ({}), but the agent reads the same boot id as before, as in a container or after "
      "systemctl soft-reboot, so it cannot verify the update. If the node is healthy, remove its record: kubectl "
      "annotate node {} haulout.dev/record-",
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

namespace {

using Json = nlohmann::ordered_json;

std::int64_t microseconds(WallTime time) {
  return time.time_since_epoch().count();
}

// Accepts only integers, because the JSON library converts between all number types without reporting a loss.
std::int64_t whole_number(const Json& json) {
  if (!json.is_number_integer()) throw std::invalid_argument("it has another value where a whole number is expected");
  return json.get<std::int64_t>();
}

template <class Count>
void read_count(const Json& json, const char* key, Count& count) {
  if (!json.contains(key)) return;
  const std::int64_t number = whole_number(json.at(key));
  if (!std::in_range<Count>(number)) throw std::invalid_argument("it contains a number that is out of range");
  count = static_cast<Count>(number);
}

WallTime wall_time(const Json& json) {
  return WallTime(std::chrono::microseconds(whole_number(json)));
}

void put(Json& json, const char* key, const std::optional<WallTime>& time) {
  if (time) json[key] = microseconds(*time);
}

template <class Value>
void put_unless_default(Json& json, const char* key, const Value& value) {
  if (value != Value{}) json[key] = value;
}

std::optional<WallTime> time_at(const Json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  return wall_time(json.at(key));
}

template <class Value>
void read(const Json& json, const char* key, Value& value) {
  if (json.contains(key)) json.at(key).get_to(value);
}

BootMarks boot_marks(const Json& json) {
  BootMarks marks;
  read(json, "kubelet", marks.kubelet_boot_id);
  read(json, "source", marks.start.source);
  read_count(json, "start", marks.start.at);
  return marks;
}

Json to_json(const BootMarks& marks) {
  Json json = Json::object();
  put_unless_default(json, "kubelet", marks.kubelet_boot_id);
  put_unless_default(json, "source", marks.start.source);
  put_unless_default(json, "start", marks.start.at);
  return json;
}

Record decoded(const Json& json) {
  Record record;
  if (whole_number(json.at("v")) != 1) throw std::invalid_argument("a newer version of Haulout has written it");
  const auto state = state_of(json.at("state").get<std::string>());
  if (!state) throw std::invalid_argument("its state is unknown");
  record.state = *state;
  record.since = wall_time(json.at("since"));
  read(json, "bootID", record.boot_id);
  read(json, "slot", record.slot);
  read(json, "run", record.run);
  read(json, "cordoned", record.cordoned);
  read(json, "requested", record.requested);
  read(json, "reasons", record.reasons);
  if (json.contains("oldTaints")) record.old_taints = json.at("oldTaints").get<std::set<std::string>>();
  read(json, "unverified", record.unverified);
  read(json, "from", record.from);
  read(json, "to", record.to);
  read(json, "slotVersion", record.slot_version);
  read(json, "updates", record.updates);
  read(json, "installing", record.installing);
  read_count(json, "failedUpdates", record.failed_updates);
  read_count(json, "serviceRestarts", record.service_restarts);
  read(json, "restarted", record.restarted);
  read(json, "inPlace", record.in_place);
  read_count(json, "method", record.method);
  read(json, "asked", record.asked);
  read(json, "askedAgain", record.asked_again);
  if (json.contains("marks")) record.marks = boot_marks(json.at("marks"));
  record.deadline = time_at(json, "deadline");
  read_count(json, "failures", record.failures);
  record.not_before = time_at(json, "notBefore");
  record.began = time_at(json, "began");
  read(json, "judged", record.judged);
  record.verified_at = time_at(json, "verifiedAt");
  read(json, "updatedTo", record.updated_to);
  read(json, "failedTo", record.failed_to);
  read(json, "waitsFor", record.waits_for);
  record.needed_since = time_at(json, "neededSince");
  if (json.contains("reboots"))
    for (const Json& each : json.at("reboots"))
      record.reboots.push_back({wall_time(each.at("at")), each.at("reasons").get<std::vector<std::string>>(),
                                each.at("target").get<std::string>(), each.value("cleared", false),
                                each.value("askedOnly", false)});
  if (json.contains("durations"))
    for (const Json& each : json.at("durations")) record.durations.emplace_back(whole_number(each));
  if (json.contains("drainTook")) record.drain_took = std::chrono::seconds(whole_number(json.at("drainTook")));
  read(json, "badTargets", record.bad_targets);
  read(json, "failedVersions", record.failed_versions);
  read(json, "cause", record.cause);
  read(json, "causeMessage", record.cause_message);
  read(json, "uncordon", record.uncordon);
  // An earlier agent did not write whether the boot of a degraded node was verified. If the node has kept its cordon,
  // the boot was not verified.
  if (record.state == State::degraded && !record.uncordon && record.cause != reason::record_unreadable)
    record.unverified = true;
  read(json, "hooksPassed", record.hooks_passed);
  record.hooks_asked = time_at(json, "hooksAsked");
  read(json, "surges", record.surges);
  read(json, "asks", record.asks);
  read(json, "leaked", record.leaked);
  read(json, "evictedDaemonSets", record.evicted_daemon_sets);
  read(json, "pinned", record.pinned);
  if (json.contains("attempts"))
    for (const Json& each : json.at("attempts"))
      record.attempts.push_back(
          {wall_time(each.at("at")), each.at("reason").get<std::string>(), each.at("why").get<std::string>()});
  read(json, "authority", record.authority);
  read(json, "pool", record.pool);
  return record;
}

}  // namespace

std::string encode_record(const Record& record) {
  Json json;
  json["v"] = 1;
  json["state"] = to_string(record.state);
  json["since"] = microseconds(record.since);
  put_unless_default(json, "bootID", record.boot_id);
  put_unless_default(json, "slot", record.slot);
  put_unless_default(json, "run", record.run);
  put_unless_default(json, "cordoned", record.cordoned);
  put_unless_default(json, "requested", record.requested);
  put_unless_default(json, "reasons", record.reasons);
  if (record.old_taints) json["oldTaints"] = *record.old_taints;
  put_unless_default(json, "unverified", record.unverified);
  put_unless_default(json, "from", record.from);
  put_unless_default(json, "to", record.to);
  put_unless_default(json, "slotVersion", record.slot_version);
  put_unless_default(json, "updates", record.updates);
  put_unless_default(json, "installing", record.installing);
  put_unless_default(json, "failedUpdates", record.failed_updates);
  put_unless_default(json, "serviceRestarts", record.service_restarts);
  put_unless_default(json, "restarted", record.restarted);
  put_unless_default(json, "inPlace", record.in_place);
  put_unless_default(json, "method", record.method);
  put_unless_default(json, "asked", record.asked);
  put_unless_default(json, "askedAgain", record.asked_again);
  if (record.marks) json["marks"] = to_json(*record.marks);
  put(json, "deadline", record.deadline);
  put_unless_default(json, "failures", record.failures);
  put(json, "notBefore", record.not_before);
  put(json, "began", record.began);
  put_unless_default(json, "judged", record.judged);
  put(json, "verifiedAt", record.verified_at);
  put_unless_default(json, "updatedTo", record.updated_to);
  put_unless_default(json, "failedTo", record.failed_to);
  put_unless_default(json, "waitsFor", record.waits_for);
  put(json, "neededSince", record.needed_since);
  for (const PastReboot& each : record.reboots) {
    Json reboot{{"at", microseconds(each.at)}, {"reasons", each.reasons}, {"target", each.target}};
    put_unless_default(reboot, "cleared", each.cleared);
    put_unless_default(reboot, "askedOnly", each.asked_only);
    json["reboots"].push_back(std::move(reboot));
  }
  for (const std::chrono::seconds each : record.durations) json["durations"].push_back(each.count());
  if (record.drain_took) json["drainTook"] = record.drain_took->count();
  put_unless_default(json, "badTargets", record.bad_targets);
  put_unless_default(json, "failedVersions", record.failed_versions);
  put_unless_default(json, "cause", record.cause);
  put_unless_default(json, "causeMessage", record.cause_message);
  put_unless_default(json, "uncordon", record.uncordon);
  put_unless_default(json, "hooksPassed", record.hooks_passed);
  put(json, "hooksAsked", record.hooks_asked);
  put_unless_default(json, "surges", record.surges);
  put_unless_default(json, "asks", record.asks);
  put_unless_default(json, "leaked", record.leaked);
  put_unless_default(json, "evictedDaemonSets", record.evicted_daemon_sets);
  put_unless_default(json, "pinned", record.pinned);
  for (const PastAttempt& each : record.attempts)
    json["attempts"].push_back({{"at", microseconds(each.at)}, {"reason", each.reason}, {"why", each.why}});
  put_unless_default(json, "authority", record.authority);
  put_unless_default(json, "pool", record.pool);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const std::string& RecordText::of(const Record& record) {
  if (record_ != record) {
    text_ = encode_record(record);
    record_ = record;
  }
  return text_;
}

Record decode_record(std::string_view json) {
  std::string problem;
  try {
    return decoded(Json::parse(json));
  } catch (const Json::exception& e) {
    problem = e.what();
  } catch (const std::invalid_argument& e) {
    problem = e.what();
  }
  Record record;
  record.state = State::degraded;
  record.cause = reason::record_unreadable;
  record.cause_message =
      "the annotation haulout.dev/record cannot be read (" + one_line(problem) +
      "): if a newer Haulout has written it, upgrade this agent; otherwise, if the node is healthy, remove the "
      "annotation (kubectl annotate node NAME haulout.dev/record-), and the agent removes its cordon and starts anew";
  return record;
}

}  // namespace haulout::agent
