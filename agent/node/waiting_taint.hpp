// The taint by which an agent asks the scheduler to prefer other nodes from the time at which its node needs an update
// until the update is over (--waiting-taint). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/node/record.hpp"
#include "agent/node/state.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {

// The taint that the options ask for. Its effect is always PreferNoSchedule, which evicts no pod and keeps none away.
struct WaitingTaint {
  std::string key;
  std::string value{};  // may be empty
  bool operator==(const WaitingTaint&) const = default;
};
// Parses KEY[=VALUE]. Fails with Errc::invalid if they are not the key of a label with a domain and the value of a
// label, or if other programs act on taints of that domain: Kubernetes (kubernetes.io, k8s.io, x-k8s.io, for example
// node.kubernetes.io/out-of-service) and Karpenter (karpenter.sh).
Result<WaitingTaint> parse_waiting_taint(std::string_view text);
// Returns the taint as `kubectl taint` writes it: "KEY=VALUE:PreferNoSchedule", or "KEY:PreferNoSchedule".
std::string words_of(const WaitingTaint& taint);

// The mark that ties the taint to the agent. It is written by the request that adds the taint, and names it with the
// time at which it was added: "KEY=VALUE:PreferNoSchedule@2026-11-27T18:00:00Z". Only a taint of exactly this key,
// value, effect and time is the agent's. One that a person sets has no time. If the taint has vanished or was changed,
// the mark becomes "none", and the agent does not set the taint again until the next update.
inline constexpr std::string_view waiting_mark = "haulout.dev/waiting-taint";

// Returns what must be in force on the Node of this record. `yes`: the taint. `no`: no taint of an agent. `keep`:
// unknown, because there is no record yet, or one that cannot be read. With `wanted` the node has the taint from the
// time at which it needs an update until it has come back and is uncordoned.
Duty waiting_taint_duty(const Record& record, bool wanted);
// Returns true if the Node has the taint that its mark names.
bool has_waiting_taint(const k8s::Node& node);
// Returns the patch that adds the taint, brings its mark up to date, or takes the taint back. Returns nothing if no
// change is necessary. A taint of the same key and effect that somebody else has set stays, and there is no second one
// of them. Guarded by the Node's resourceVersion, because it contains all taints of the Node. A patch of its own: an
// authority or a policy may refuse it, and must not keep the record from being written. `now` is the server's time.
std::optional<std::string> waiting_taint_patch(const k8s::Node& node, Duty duty,
                                               const std::optional<WaitingTaint>& wanted, WallTime now);

}  // namespace haulout::agent
