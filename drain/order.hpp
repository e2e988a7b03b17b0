// In which order pods are evicted. Pure.
//
// The pod that the drain itself runs in is last of all: whoever evicts it first evicts nothing after it. Before it
// tiers, in this order: the pod's own drain-order annotation, else the first rule that selects it (lower first, neither
// counts as 0), non-critical before critical, storage controllers after the others and servers of admission webhooks
// after those, priority ascending. Inside a tier the longest grace period goes first: that bounds the makespan of list
// scheduling. Namespace and name break ties, so that two runs take the same order.
//
// Webhooks come after storage because of what their absence stops: without a webhook's server the API server may refuse
// each eviction that is left and each replacement, that of the storage controller among them; without a storage
// controller volumes are detached later, and it starts elsewhere while the rest leaves.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "k8s/label_selector.hpp"
#include "k8s/objects.hpp"
#include "retry/task.hpp"

namespace haulout::drain {

inline constexpr std::string_view drain_order_annotation = "haulout.dev/drain-order";

// "These pods at that place": what the annotation says of one pod, for many.
struct OrderRule {
  k8s::LabelSelector selector;
  std::int64_t order = 0;
  bool operator==(const OrderRule&) const = default;
};
// SELECTOR=NUMBER: "app=db=10", "tier in (db,queue)=-1". Errc::invalid otherwise, and for a selector of everything.
Result<OrderRule> parse_order_rule(std::string_view text);

struct Tier {
  bool own = false;
  std::int64_t explicit_order = 0;
  bool critical = false;
  bool webhook = false;
  bool storage = false;
  std::int32_t priority = 0;
  auto operator<=>(const Tier&) const = default;
};

struct OrderKey {
  Tier tier;
  std::int64_t negative_grace = 0;
  std::string key;
  std::string uid;
  auto operator<=>(const OrderKey&) const = default;
};

// `own_uid` is the UID of the pod we run in, or empty. `grace_override` as the options have it.
OrderKey order_key(const k8s::Pod& pod, const std::string& own_uid, std::optional<std::int64_t> grace_override,
                   const std::vector<OrderRule>& rules = {});

}  // namespace haulout::drain
