#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "agent/node/waiting_taint.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"
#include "k8s/codec.hpp"
#include "k8s/label_selector.hpp"

namespace haulout::agent {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view effect = "PreferNoSchedule";
// Programs of these domains act on taints of their nodes: they delete pods, volumes or whole machines.
constexpr std::array<std::string_view, 4> foreign_domains{"kubernetes.io", "k8s.io", "x-k8s.io", "karpenter.sh"};
// The mark of an update during which somebody else has removed or changed the agent's taint.
constexpr const char* taken_away = "none";

bool is_in_domain(std::string_view prefix, std::string_view domain) {
  return prefix == domain || prefix.ends_with(fmt::format(".{}", domain));
}

// Returns the text by which a mark names a taint. A taint without a time is never an agent's.
std::string named(const k8s::Taint& taint) {
  if (!taint.time_added) return {};
  return fmt::format("{}={}:{}@{}", taint.key, taint.value, taint.effect, k8s::format_time(*taint.time_added));
}

Json as_json(const k8s::Taint& taint) {
  Json json{{"key", taint.key}};
  if (!taint.value.empty()) json["value"] = taint.value;
  json["effect"] = taint.effect;
  if (taint.time_added) json["timeAdded"] = k8s::format_time(*taint.time_added);
  return json;
}

}  // namespace

Result<WaitingTaint> parse_waiting_taint(std::string_view text) {
  const auto wrong = [](std::string why) { return Error(Errc::invalid, std::move(why)); };
  const auto equals = std::min(text.find('='), text.size());
  WaitingTaint taint{std::string(text.substr(0, equals)), std::string(text.substr(std::min(equals + 1, text.size())))};
  if (text.find(':') != text.npos)
    return wrong("it must be KEY or KEY=VALUE, without an effect: the effect is always PreferNoSchedule");
  const auto slash = taint.key.find('/');
  if (slash == taint.key.npos)
    return wrong("its key needs a domain, like example.com/update-waits: other programs use keys without one");
  const auto selector = k8s::parse_label_selector(taint.key);
  const bool is_key = selector && selector->requirements().size() == 1 &&
                      selector->requirements().front().op == k8s::LabelSelector::Operator::exists &&
                      selector->requirements().front().key == taint.key;
  if (!is_key) return wrong("its key must be like the key of a label: example.com/update-waits");
  if (!taint.value.empty() && !k8s::is_label_name(taint.value))
    return wrong(
        "its value must be like the value of a label: at most 63 letters, digits, '-', '_' and '.', with a "
        "letter or digit at both ends");
  const std::string_view prefix = std::string_view(taint.key).substr(0, slash);
  for (const std::string_view domain : foreign_domains)
    if (is_in_domain(prefix, domain))
      return wrong(
          fmt::format("other programs act on taints of the domain {}, so an agent must not set them; take a "
                      "key of your own domain, like example.com/update-waits",
                      domain));
  return taint;
}

std::string words_of(const WaitingTaint& taint) {
  return fmt::format("{}{}{}:{}", taint.key, taint.value.empty() ? "" : "=", taint.value, effect);
}

Duty waiting_taint_duty(const Record& record, bool wanted) {
  if (record.cause == reason::record_unreadable) return Duty::keep;
  switch (record.state) {
    case State::unknown: return Duty::keep;
    case State::pending:
    case State::waiting:
    case State::draining:
    case State::updating:
    case State::ready:
    case State::rebooting:
    case State::verifying: return wanted ? Duty::yes : Duty::no;
    case State::idle:
    case State::uncordoning:
    case State::soaking:
    case State::degraded: return Duty::no;
  }
  return Duty::keep;
}

bool has_waiting_taint(const k8s::Node& node) {
  const std::string mark = k8s::value_at(node.annotations, waiting_mark).value_or("");
  return !mark.empty() && std::any_of(node.taints.begin(), node.taints.end(),
                                      [&mark](const k8s::Taint& taint) { return named(taint) == mark; });
}

std::optional<std::string> waiting_taint_patch(const k8s::Node& node, Duty duty,
                                               const std::optional<WaitingTaint>& wanted, WallTime now) {
  if (duty == Duty::keep) return std::nullopt;
  const std::string mark = k8s::value_at(node.annotations, waiting_mark).value_or("");
  const auto is_ours = [&mark](const k8s::Taint& taint) { return !mark.empty() && named(taint) == mark; };
  const auto ours = std::find_if(node.taints.begin(), node.taints.end(), is_ours);
  const bool there = ours != node.taints.end();
  const bool due = duty == Duty::yes && wanted;
  const bool stays = there && due && ours->key == wanted->key && ours->value == wanted->value;
  const bool taken = !mark.empty() && !there;
  if (stays) return std::nullopt;
  std::string new_mark = due && taken ? taken_away : "";
  std::vector<k8s::Taint> taints = node.taints;
  if (there) taints.erase(taints.begin() + (ours - node.taints.begin()));
  const bool occupied = due && std::any_of(taints.begin(), taints.end(), [&](const k8s::Taint& taint) {
                          return taint.key == wanted->key && taint.effect == effect;
                        });
  if (due && !taken && !occupied) {
    taints.push_back({wanted->key, std::string(effect), now, wanted->value});
    new_mark = named(taints.back());
  }
  Json patch{{"metadata", {{"resourceVersion", node.resource_version}}}};
  if (new_mark != mark) patch["metadata"]["annotations"][std::string(waiting_mark)] = Json();
  if (new_mark != mark && !new_mark.empty()) patch["metadata"]["annotations"][std::string(waiting_mark)] = new_mark;
  if (there || taints.size() != node.taints.size()) {
    Json all = Json::array();
    for (const k8s::Taint& taint : taints) all.push_back(as_json(taint));
    patch["spec"]["taints"] = taints.empty() ? Json() : std::move(all);
  }
  if (patch.size() == 1 && patch["metadata"].size() == 1) return std::nullopt;
  return patch.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace haulout::agent
