// Cordon and uncordon with an owner: the field spec.unschedulable and our mark (annotation haulout.dev/cordon) change
// in one guarded patch. Decisions are pure; the coroutines retry conflicts by reading again.
//
// `kubectl uncordon` clears the field and leaves the mark, and a human's later cordon must not be taken for ours. So
// the mark counts as ours only while the server says (managedFields) that the field was set by a Haulout and has not
// been cleared since; where it does not say who set it, while the taint node.kubernetes.io/unschedulable was added
// within 10 s of the mark's time.
#pragma once

#include <optional>
#include <string>

#include "k8s/client.hpp"
#include "retry/rng.hpp"

namespace haulout::drain {

inline constexpr std::string_view cordon_annotation = "haulout.dev/cordon";
inline constexpr std::string_view unschedulable_taint = "node.kubernetes.io/unschedulable";
// Measured distance between the patch and the taint's timeAdded: 11 ms; a busy controller manager takes seconds.
inline constexpr Duration mark_tolerance = std::chrono::seconds(10);

struct CordonMark {
  std::string run;
  std::string by;
  WallTime at{};
};
std::string encode_mark(const CordonMark& mark);
// Nothing when absent or unreadable: a mark that we cannot read is not ours.
std::optional<CordonMark> mark_of(const k8s::Node& node);

enum class CordonOwner { nobody, haulout, other };
// Whose cordon this Node carries.
CordonOwner cordon_owner(const k8s::Node& node);

// Between these two states of one Node, both of them cordoned, somebody has cleared the field and it was set anew: it
// took pods meanwhile. Our cordon has become another's, or another's ours; our mark is another one; or, where it is
// not ours, the taint that follows the field is. Which other has set it, and when, proves nothing: those bookings move
// with whatever they write.
bool is_another_cordon(const k8s::Node& before, const k8s::Node& after);

// The merge patch that gets there, or nothing when there is nothing to do. Guarded by resourceVersion.
std::optional<std::string> cordon_patch(const k8s::Node& node, const CordonMark& mark);
// Takes back only our own cordon unless `foreign_too`; a stale mark is removed without touching the field.
std::optional<std::string> uncordon_patch(const k8s::Node& node, bool foreign_too);
// Takes back the cordon of this run and nothing else: not another run's, not a human's.
std::optional<std::string> take_back_patch(const k8s::Node& node, const std::string& run);

struct CordonChange {
  k8s::Node before;
  k8s::Node after;
  bool changed = false;
};
// Applies such a patch; conflicts are read again and retried until the deadline. Other failures are returned. The
// mark's time is set when the patch is sent, by the server's clock.
// `expected_uid`, unless empty: a Node of another UID is left alone, and the change says `changed == false`.
Task<CordonChange> cordon(k8s::Client& client, Rng& rng, std::string node, std::string expected_uid, CordonMark mark,
                          k8s::DryRun dry_run, TimePoint deadline);
Task<CordonChange> uncordon(k8s::Client& client, Rng& rng, std::string node, bool foreign_too, k8s::DryRun dry_run,
                            TimePoint deadline);

Task<CordonChange> take_back(k8s::Client& client, Rng& rng, std::string node, std::string run, TimePoint deadline);

}  // namespace haulout::drain
