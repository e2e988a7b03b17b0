#include "drain/order.hpp"

#include <charconv>

namespace haulout::drain {

OrderKey order_key(const k8s::Pod& pod, const std::string& own_uid, std::optional<std::int64_t> grace_override) {
  OrderKey key;
  if (const auto found = pod.annotations.find(std::string(drain_order_annotation)); found != pod.annotations.end()) {
    const std::string& text = found->second;
    std::int64_t order = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), order);
    if (failure == std::errc() && end == text.data() + text.size()) key.tier.explicit_order = order;
  }
  key.tier.critical = pod.priority_class == "system-cluster-critical" || pod.priority_class == "system-node-critical";
  key.tier.priority = pod.priority;
  key.tier.own = !own_uid.empty() && pod.uid == own_uid;
  key.negative_grace = -grace_override.value_or(pod.grace_seconds);
  key.key = pod.key();
  key.uid = pod.uid;
  return key;
}

}  // namespace haulout::drain
