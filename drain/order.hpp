// The order in which the drain evicts pods. Pure.
//
// Most pods belong to the first stage (Stage). Within a stage, the pods are sorted by these keys, of which 1 to 5 form
// the tier:
//   1. explicit order, lower first: the pod's own drain-order annotation, else the first rule that selects it, else 0
//   2. in the stage of gangs: the gang. Its members leave together, so they count as equal in 3 to 5
//   3. non-critical before critical
//   4. storage controllers after the others, servers of admission webhooks after those
//   5. priority, ascending
//   6. grace period, longest first, because starting the longest one first shortens the whole drain
//   7. namespace and name, so that two runs use the same order
//
// An explicit order never makes pods wait until others are deleted, so it only sorts the pods of one stage.
//
// Webhook servers come after storage controllers, because a missing webhook server does more harm. Without it, the API
// server may refuse every remaining eviction and every replacement, including that of the storage controller. Without a
// storage controller, volumes are only detached later, and its replacement starts on another node while the other pods
// are evicted.
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

// Gives all pods that `selector` matches an explicit order, as the annotation does for one pod.
struct OrderRule {
  k8s::LabelSelector selector;
  std::int64_t order = 0;
  bool operator==(const OrderRule&) const = default;
};
// Parses SELECTOR=NUMBER, for example "app=db=10" or "tier in (db,queue)=-1". Fails with Errc::invalid for any other
// text, and for an empty selector, which would match every pod.
Result<OrderRule> parse_order_rule(std::string_view text);

// A pod is evicted when all pods of the earlier stages are deleted.
enum class Stage {
  first,
  gang,         // members of gangs (gangs.hpp): while another pod may keep the drain from ending, none is broken for it
  last,         // a rule with the action `last` (pod_rules.hpp)
  daemon_sets,  // pods of DaemonSets that policy has evicted (Policy::evict_daemon_sets)
  own,          // the pod that Haulout runs in, because its eviction ends this process
};

// The stage and the keys 1 to 5.
struct Tier {
  Stage stage = Stage::first;
  std::int64_t explicit_order = 0;
  std::string gang{};  // empty in other stages than that of gangs
  bool critical = false;
  bool webhook = false;
  bool storage = false;
  std::int32_t priority = 0;
  auto operator<=>(const Tier&) const = default;
};

// All keys. A smaller key comes first.
struct OrderKey {
  Tier tier;
  std::int64_t negative_grace = 0;
  std::string key;
  std::string uid;
  auto operator<=>(const OrderKey&) const = default;
};

// Returns the sort key of the pod. `own_uid` is the UID of the pod that Haulout runs in, or empty. `grace_override` is
// the grace period of the options; if it is set, it replaces the pod's own. `stage` is the stage of the pod, unless it
// is the own one.
OrderKey order_key(const k8s::Pod& pod, const std::string& own_uid, std::optional<std::int64_t> grace_override,
                   const std::vector<OrderRule>& rules = {}, Stage stage = Stage::first);

}  // namespace haulout::drain
