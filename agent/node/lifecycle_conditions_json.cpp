#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "agent/node/lifecycle_conditions.hpp"
#include "base/text.hpp"
#include "drain/cordon.hpp"
#include "drain/reasons.hpp"
#include "k8s/codec.hpp"

namespace haulout::agent {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view not_before_words = "not before ";
// Limit for the message, in characters. It may include text of other programs.
constexpr std::size_t longest_message = 1024;

const k8s::NodeCondition* find(const k8s::Node& node, std::string_view type) {
  const auto found =
      std::find_if(node.conditions.begin(), node.conditions.end(), [&](const auto& each) { return each.type == type; });
  return found == node.conditions.end() ? nullptr : &*found;
}

const k8s::NodeCondition* find_own(const k8s::Node& node, std::string_view type) {
  const k8s::NodeCondition* found = find(node, type);
  return found && is_own(*found) ? found : nullptr;
}

// The name of the state as a reason: the API requires one, and nothing need delay the node.
std::string name_of(State state) {
  std::string name(to_string(state));
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

// The beginning of a message: author and time. Only a change of these is worth a write. The rest may change all the
// time, and is also the Node's annotation haulout.dev/message.
std::string_view lead_of(std::string_view message) {
  const std::size_t author = condition_author.size();
  if (!message.substr(std::min(author, message.size())).starts_with(not_before_words)) return message.substr(0, author);
  return message.substr(0, message.find(' ', author + not_before_words.size()));
}

// This run has cordoned the node. The mark counts, too: the record says so only a moment later.
bool was_cordoned(const Record& record, const k8s::Node& node) {
  if (record.cordoned || record.run.empty()) return record.cordoned;
  const auto mark = drain::mark_of(node);
  return mark && mark->run == record.run;
}

// The cordon under which the agent works is in force. The agent may also work under a cordon that a person had set
// before.
bool cordon_in_force(const k8s::Node& node, const Record& record) {
  if (record.cause == reason::record_unreadable)
    return drain::cordon_owner(node) == drain::CordonOwner::haulout && drain::mark_of(node)->by == cordoned_by;
  return node.unschedulable && !record.run.empty() && was_cordoned(record, node);
}

std::optional<ToldCondition> planned(const ConditionFacts& facts) {
  const State state = facts.record.state;
  const bool before_cordon = state == State::pending || state == State::waiting ||
                             (state == State::draining && !was_cordoned(facts.record, facts.node));
  if (!before_cordon || !facts.needed) return std::nullopt;
  const k8s::NodeCondition* shown = find_own(facts.node, planned_condition);
  const bool leaves_shown = shown && !facts.gates_asked;
  // A drain says Evicting from its first moment on, when it is only about to cordon the node.
  if (!leaves_shown && !facts.status.reason.empty() && facts.status.reason != reason::evicting) {
    const std::string time =
        facts.not_before ? fmt::format("{}{}: ", not_before_words, k8s::format_time(*facts.not_before)) : "";
    return ToldCondition{planned_condition, facts.status.reason,
                         fmt::format("{}{}{}", condition_author, time, facts.status.message)};
  }
  if (!shown) return std::nullopt;
  return ToldCondition{planned_condition, shown->reason, shown->message};
}

bool is_drained(const ConditionFacts& facts) {
  const State state = facts.record.state;
  return facts.proved && (state == State::ready || state == State::rebooting) && facts.node.unschedulable &&
         facts.record.boot_id == facts.boot_id && !has_foreign_boot_id(facts.node, facts.boot_id);
}

std::string guarded_patch(const k8s::Node& node, Json conditions) {
  return Json{{"metadata", {{"resourceVersion", node.resource_version}}},
              {"status", {{"conditions", std::move(conditions)}}}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json removal_of(std::string_view type) {
  return Json{{"type", type}, {"$patch", "delete"}};
}

Json condition_of(const ToldCondition& told, bool transition, WallTime now) {
  const std::string time = k8s::format_time(now);
  Json condition{{"type", told.type},
                 {"status", "True"},
                 {"reason", told.reason},
                 {"message", shortened(told.message, longest_message)},
                 {"lastHeartbeatTime", time}};
  if (transition) condition["lastTransitionTime"] = time;
  return condition;
}

bool is_silent(const k8s::NodeCondition& shown, WallTime now) {
  return shown.type != planned_condition && (!shown.last_heartbeat || now >= *shown.last_heartbeat + heartbeat / 2);
}

}  // namespace

bool is_own(const k8s::NodeCondition& condition) {
  return condition.type == old_maintenance_condition ||
         (k8s::own_condition(condition.type) && condition.message.starts_with(condition_author));
}

std::vector<ToldCondition> told_conditions(const ConditionFacts& facts) {
  const Record& record = facts.record;
  const bool unreadable = record.cause == reason::record_unreadable;
  const bool cordoned = cordon_in_force(facts.node, record);
  const bool machine_changes =
      !record.run.empty() && (record.state == State::updating || record.state == State::rebooting);
  const std::string reason = facts.status.reason.empty() ? name_of(record.state) : facts.status.reason;
  const std::string message =
      fmt::format("{}{}", condition_author,
                  facts.status.message.empty() ? fmt::format("the update is in the state {}", to_string(record.state))
                                               : facts.status.message);
  std::vector<ToldCondition> told;
  if (!unreadable && !cordoned)
    if (auto plan = planned(facts)) told.push_back(*std::move(plan));
  if (!unreadable && cordoned && record.state == State::draining) told.push_back({drain_condition, reason, message});
  if (!unreadable && is_drained(facts))
    told.push_back({drained_condition, std::string(drained_reason),
                    fmt::format("{}no pod that must leave is on the node, and it is cordoned", condition_author)});
  if (cordoned || (!unreadable && machine_changes)) told.push_back({maintenance_condition, reason, message});
  return told;
}

bool is_told(std::string_view type, const std::vector<ToldCondition>& told) {
  return std::any_of(told.begin(), told.end(), [&](const ToldCondition& each) { return each.type == type; });
}

bool say_the_same(const std::vector<ToldCondition>& one, const std::vector<ToldCondition>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const ToldCondition& a, const ToldCondition& b) {
                      return a.type == b.type && a.reason == b.reason && lead_of(a.message) == lead_of(b.message);
                    });
}

namespace {

struct Changes {
  struct Shown {
    const ToldCondition& told;
    bool transition;  // the condition was not True before
  };
  std::vector<Shown> shown;
  std::vector<std::string_view> removed;
  bool empty() const { return shown.empty() && removed.empty(); }
};

Changes changes_of(const k8s::Node& node, const std::vector<ToldCondition>& told, WallTime now, bool beat) {
  Changes changes;
  for (const ToldCondition& each : told) {
    const k8s::NodeCondition* shown = find(node, each.type);
    const bool is_true = shown && shown->status == "True";
    const bool same = is_true && shown->reason == each.reason && lead_of(shown->message) == lead_of(each.message) &&
                      !(beat && is_silent(*shown, now));
    const bool theirs = shown && !is_own(*shown) && shown->status != "False";
    if (!same && !theirs) changes.shown.push_back({each, !is_true});
  }
  for (const k8s::NodeCondition& shown : node.conditions)
    if (is_own(shown) && !is_told(shown.type, told)) changes.removed.push_back(shown.type);
  return changes;
}

}  // namespace

bool shows_conditions(const k8s::Node& node, const std::vector<ToldCondition>& told, WallTime now, bool beat) {
  return changes_of(node, told, now, beat).empty();
}

std::optional<std::string> conditions_patch(const k8s::Node& node, const std::vector<ToldCondition>& told, WallTime now,
                                            bool beat) {
  const Changes changes = changes_of(node, told, now, beat);
  if (changes.empty()) return std::nullopt;
  Json conditions = Json::array();
  for (const auto& [shown, transition] : changes.shown) conditions.push_back(condition_of(shown, transition, now));
  for (const std::string_view type : changes.removed) conditions.push_back(removal_of(type));
  return guarded_patch(node, std::move(conditions));
}

bool must_withdraw_drained(const k8s::Node& node, const std::vector<ToldCondition>& told) {
  return find_own(node, drained_condition) && !is_told(drained_condition, told);
}

std::string drained_withdrawal(const k8s::Node& node) {
  return guarded_patch(node, Json::array({removal_of(drained_condition)}));
}

}  // namespace haulout::agent
