// What a caller may ask to be protected beyond PodDisruptionBudgets, without anything being written. All of it is off
// by default, and then costs no request. Plain data; parsing is pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::drain {

// A pod that is the only one of its controller: nobody is served while it moves.
enum class SingleReplica { allow, warn, block };

// "2", or "25%" of a controller's replicas.
struct Share {
  std::uint32_t value = 1;
  bool percent = false;
  bool operator==(const Share&) const = default;
};

struct Guards {
  SingleReplica single_replica = SingleReplica::allow;
  // So many pods of a controller may be evicted whose replacements are not Ready; unset: any number.
  std::optional<Share> max_unavailable;
  // One pod of each controller goes first, and the others when its replacement has found a node, or after this time;
  // none goes while a replacement finds no node. Zero: off.
  Duration canary{};

  // Pods on other nodes are looked at, too.
  bool follows_pods() const { return max_unavailable.has_value() || canary > Duration::zero(); }
  bool any() const { return follows_pods() || single_replica != SingleReplica::allow; }
};

// Annotations of a pod or of its controller that take the place of what the options say; the pod's comes first.
inline constexpr std::string_view single_replica_annotation = "haulout.dev/single-replica";
inline constexpr std::string_view max_unavailable_annotation = "haulout.dev/max-unavailable";

// Errc::invalid unless it is a number from 1 on or a percentage from 1% to 100%.
Result<Share> parse_share(std::string_view text);
std::string to_string(const Share& share);
// How many of so many replicas that is, rounded down, and always one: a drain that may evict nothing never ends. A
// percentage of an unknown number is one.
std::size_t share_of(const Share& share, std::optional<std::int32_t> replicas);

// "allow", "warn" or "block".
std::optional<SingleReplica> parse_single_replica(std::string_view text);
std::string_view to_string(SingleReplica policy);

}  // namespace haulout::drain
