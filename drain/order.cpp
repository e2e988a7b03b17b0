#include "drain/order.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "drain/gangs.hpp"

namespace haulout::drain {

namespace {

std::int64_t explicit_order(const k8s::Pod& pod, const std::vector<OrderRule>& rules) {
  const auto found = pod.annotations.find(std::string(drain_order_annotation));
  const auto own = found == pod.annotations.end() ? std::nullopt : parse_number<std::int64_t>(found->second);
  if (own) return *own;
  for (const OrderRule& rule : rules)
    if (rule.selector.matches(pod.labels)) return rule.order;
  return 0;
}

}  // namespace

Result<OrderRule> parse_order_rule(std::string_view text) {
  const auto wrong = [](std::string_view why) {
    return Error(Errc::invalid, fmt::format("{}; write SELECTOR=NUMBER, like app=db=10", why));
  };
  const std::size_t equals = text.rfind('=');
  const auto order =
      equals == std::string_view::npos ? std::nullopt : parse_number<std::int64_t>(text.substr(equals + 1));
  if (!order) return wrong("it does not end with = and a whole number");
  auto selector = k8s::parse_label_selector(text.substr(0, equals));
  if (!selector) return wrong(selector.error().message());
  if (selector->empty()) return wrong("an empty selector would match every pod");
  return OrderRule{*std::move(selector), *order};
}

OrderKey order_key(const k8s::Pod& pod, const std::string& own_uid, std::optional<std::int64_t> grace_override,
                   const std::vector<OrderRule>& rules, Stage stage) {
  OrderKey key;
  key.tier.stage = !own_uid.empty() && pod.uid == own_uid ? Stage::own : stage;
  key.tier.explicit_order = explicit_order(pod, rules);
  if (const auto gang = key.tier.stage == Stage::gang ? named_gang(pod) : std::nullopt) {
    // All members of a gang form one tier, so that they leave as near in time as budgets and places allow.
    key.tier.gang = gang->text();
  } else {
    key.tier.storage = pod.storage_controller;
    key.tier.webhook = pod.webhook_server;
    key.tier.critical = pod.priority_class == "system-cluster-critical" || pod.priority_class == "system-node-critical";
    key.tier.priority = pod.priority;
  }
  key.negative_grace = -grace_override.value_or(pod.grace_seconds);
  key.key = pod.key();
  key.uid = pod.uid;
  return key;
}

}  // namespace haulout::drain
