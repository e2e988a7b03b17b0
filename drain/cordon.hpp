// Cordons and uncordons a Node, and records who cordoned it: one patch, guarded by resourceVersion, changes both
// spec.unschedulable and Haulout's mark (annotation haulout.dev/cordon). The functions that make a patch or examine a
// Node are pure. The coroutines send a patch; after a conflict they read the Node again and retry. They are
// cancellable.
//
// `kubectl uncordon` clears the field and leaves the mark, and a later cordon by a person must not count as Haulout's.
// So the mark is valid only while the field is set and managedFields name Haulout as the field's manager. If
// managedFields name no manager, the mark is valid if the taint node.kubernetes.io/unschedulable was added within 10 s
// of the mark's time, or does not exist yet.
#pragma once

#include <optional>
#include <string>

#include "k8s/client.hpp"
#include "retry/rng.hpp"

namespace haulout::drain {

inline constexpr std::string_view cordon_annotation = "haulout.dev/cordon";
inline constexpr std::string_view unschedulable_taint = "node.kubernetes.io/unschedulable";
// Largest distance between the mark's time and the taint's `timeAdded` at which the taint counts as that of Haulout's
// cordon. Measured: 11 ms; a busy controller manager takes seconds.
inline constexpr Duration mark_tolerance = std::chrono::seconds(10);

// The content of the mark: the run that has cordoned the node, who runs it, and when, by the server's clock.
struct CordonMark {
  std::string run;
  std::string by;
  WallTime at{};
};
std::string encode_mark(const CordonMark& mark);
// Returns nullopt if the mark is absent or unreadable. In both cases the cordon does not count as Haulout's.
std::optional<CordonMark> mark_of(const k8s::Node& node);

enum class CordonOwner { nobody, haulout, other };
// Returns who cordoned this Node; `nobody` if it is not cordoned.
CordonOwner cordon_owner(const k8s::Node& node);

// Returns true if the Node is cordoned in `before` and in `after` but was uncordoned in between, so that it could
// receive pods. The evidence is one of: the manager of the field changed from Haulout to another writer or back;
// Haulout is the manager in both, and the mark changed; or, if another writer is the manager in both or a manager or
// mark is unknown, the time of the taint changed. A change from one other writer to another is no evidence: if several
// writers own the field, `unschedulable_manager` names the one that has written to the Node last, whatever it wrote.
bool is_another_cordon(const k8s::Node& before, const k8s::Node& after);

// Returns the merge patch that cordons the Node, or nullopt if it is cordoned already. Guarded by resourceVersion.
std::optional<std::string> cordon_patch(const k8s::Node& node, const CordonMark& mark);
// Returns the patch that removes Haulout's cordon, or any cordon if `foreign_too`. It also removes a mark that is not
// valid any more; without `foreign_too` it then does not change the field. Nullopt if there is nothing to do.
std::optional<std::string> uncordon_patch(const k8s::Node& node, bool foreign_too);
// Returns the patch that removes the cordon of this run only, not another run's and not a person's. If the mark names
// this run but is not valid any more, the patch removes only the mark. Nullopt if there is nothing to do.
std::optional<std::string> take_back_patch(const k8s::Node& node, const std::string& run);

// The Node before and after a change; `changed` is false if there was nothing to change.
struct CordonChange {
  k8s::Node before;
  k8s::Node after;
  bool changed = false;
};
// Read the Node and apply the patch. After a conflict they read again and retry until the deadline; they return other
// failures. The mark's time is the server's time when the patch is sent.
// If `expected_uid` is not empty and the Node has another UID, cordon() changes nothing and returns `changed == false`.
Task<CordonChange> cordon(k8s::Client& client, Rng& rng, std::string node, std::string expected_uid, CordonMark mark,
                          k8s::DryRun dry_run, TimePoint deadline);
Task<CordonChange> uncordon(k8s::Client& client, Rng& rng, std::string node, bool foreign_too, k8s::DryRun dry_run,
                            TimePoint deadline);

Task<CordonChange> take_back(k8s::Client& client, Rng& rng, std::string node, std::string run, TimePoint deadline);

}  // namespace haulout::drain
