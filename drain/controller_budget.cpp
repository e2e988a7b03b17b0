// ControllerBook: which pods may be evicted now, and why the others must wait.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "drain/controller_book.hpp"
#include "drain/reasons.hpp"
#include "drain/text.hpp"

namespace haulout::drain {

namespace {

// How long a replacement may look for a node before that is reported, if canaries are off.
constexpr Duration patience_with_homeless = std::chrono::seconds(30);

std::string seconds(Duration duration) {
  return fmt::format("{} s", std::chrono::ceil<std::chrono::seconds>(duration).count());
}

}  // namespace

// Records the state of the group before its first pod leaves.
void ControllerBook::count_first(Group& group) {
  group.counted = true;
  group.tallied = false;
  std::size_t ready_at_first = 0;
  std::size_t broken = 0;
  std::size_t coming = 0;
  each_known(group, [&](Member& member) {
    const bool ready = member.seen && member.ready && !member.terminating;
    member.here_at_first = member.seen;
    member.ready_at_first = ready;
    member.broken_at_first = member.seen && member.broken;
    member.left_before = member.leaving;
    member.takes_nothing = !ready || member.leaving;
    ready_at_first += ready ? 1 : 0;
    if (member.seen && !member.ready && !member.terminating) ++(member.broken ? broken : coming);
  });
  const auto& replicas = group.controller.replicas;
  group.wanted_at_first = replicas;
  const auto wanted = static_cast<std::size_t>(std::max(0, replicas.value_or(0)));
  const std::size_t accounted = ready_at_first + broken;
  group.missing_at_first = !replicas ? coming : wanted > accounted ? wanted - accounted : 0;
}

// Number of pods that left and have no Ready replacement yet. Pods that leave other nodes and replicas added by a
// scale-up use up new Ready pods, too. Replicas removed by a scale-down need no replacement. A pod elsewhere that only
// stops being Ready does not count.
std::size_t ControllerBook::without_replacement(const Group& group) const {
  std::int64_t ready = 0, new_ready = 0, stayed = 0, ours = 0, taken = 0, at_first = 0;
  each_known(group, [&](const Member& member) {
    at_first += member.ready_at_first ? 1 : 0;
    ours += member.leaving && member.ready_at_first ? 1 : 0;
    taken += member.leaving && !member.takes_nothing ? 1 : 0;
    if (!member.seen || member.terminating || member.leaving) return;
    stayed += member.ready_at_first ? 1 : 0;
    ready += member.ready ? 1 : 0;
    new_ready += member.ready && !member.ready_at_first ? 1 : 0;
  });
  const std::int64_t gone_elsewhere = std::max<std::int64_t>(0, at_first - stayed - ours);
  const std::int64_t ceiling = taken + static_cast<std::int64_t>(group.missing_at_first);
  const auto& wanted = group.controller.replicas;
  const std::int64_t more = wanted && group.wanted_at_first ? std::int64_t{*wanted} - *group.wanted_at_first : 0;
  std::int64_t missing = std::min(ceiling, ceiling + gone_elsewhere + more - new_ready);
  if (wanted) missing = std::min(missing, *wanted - ready);
  return static_cast<std::size_t>(std::max<std::int64_t>(0, missing));
}

// Caches the tally: hundreds of pods ask for it between two events, but the members are walked only once.
const ControllerBook::Tally& ControllerBook::tally_of(const Group& group) const {
  Tally& tally = group.tally;
  if (std::exchange(group.tallied, true)) return tally;
  tally = Tally();
  tally.without_replacement = without_replacement(group);
  each_known(group, [&](const Member& member) {
    tally.any_left |= member.leaving && !member.left_before;
    tally.any_left_before |= member.left_before;
    if (!member.seen) return;
    tally.found_home |= member.bound && !member.here_at_first;
    if (!member.unschedulable || member.terminating) return;
    const auto consider = [&](const Member*& longest) {
      if (!longest || member.unschedulable_since < longest->unschedulable_since) longest = &member;
    };
    consider(tally.homeless_of_all);
    if (!member.here_at_first) consider(tally.homeless);
  });
  return tally;
}

std::optional<ControllerBook::Hold> ControllerBook::held_by_budget(const Group& group, const k8s::Pod& pod) const {
  // Evicting a pod that is not Ready does not reduce the number of Ready pods.
  if (!guards_.max_unavailable || !pod.ready) return std::nullopt;
  // Such a controller may never replace the pod. So only the pod's own annotation sets a limit.
  if (group.controller.cannot_scale && !max_unavailable_override(pod, Controller())) return std::nullopt;
  const Share share = max_unavailable_override(pod, group.controller).value_or(*guards_.max_unavailable);
  const std::size_t allowed = share_of(share, group.controller.replicas);
  const std::size_t missing = tally_of(group).without_replacement;
  if (missing < allowed) return std::nullopt;
  const std::string of =
      group.controller.replicas ? fmt::format(" of its {}", *group.controller.replicas) : std::string();
  return Hold{reason::blocked_by_controller_budget,
              fmt::format("waiting until a replacement is Ready: {} may lack {}{} ({}), and lacks {}",
                          group.controller.text(), pods(allowed), of, to_string(share), missing)};
}

// Returns the replacement that finds no node, or nullptr if there is none. If a pod was leaving before the first count
// (perhaps the canary of an earlier run), its replacement may have existed then. In that case all pods of the group are
// considered.
const ControllerBook::Member* ControllerBook::homeless(const Group& group) const {
  const Tally& tally = tally_of(group);
  if (tally.any_left_before) return tally.homeless_of_all;
  return group.left_first ? tally.homeless : nullptr;
}

std::optional<ControllerBook::Hold> ControllerBook::held_by_canary(const Group& group, TimePoint now) const {
  if (!has_canaries()) return std::nullopt;
  if (const Member* member = homeless(group)) {
    const TimePoint told = homeless_told(*member);
    return Hold{told <= now ? reason::replacement_unschedulable : reason::awaiting_replacement,
                fmt::format("waiting because a replacement, pod {}, cannot be scheduled: {}", member->key,
                            *member->unschedulable),
                told <= now ? TimePoint::max() : told};
  }
  if (!group.left_first) return std::nullopt;
  const TimePoint until = *group.left_first + guards_.canary;
  if (tally_of(group).found_home || until <= now) return std::nullopt;
  return Hold{reason::awaiting_replacement,
              fmt::format("waiting until the first replacement of {} is scheduled, or for {}", group.controller.text(),
                          seconds(guards_.canary)),
              until};
}

std::optional<ControllerBook::Hold> ControllerBook::held(const k8s::Pod& pod, TimePoint now) {
  if (!guards_.follows_pods() || !guarded(pod)) return std::nullopt;
  Group* group = group_of(pod);
  if (!group) {
    want(pod);
    return Hold{reason::controller_unknown,
                fmt::format("waiting until its {} {} has been read", pod.controller->kind, pod.controller->name)};
  }
  if (!seen_.contains(pod.ns))
    return Hold{reason::controller_unknown,
                fmt::format("waiting until the pods of {} on other nodes can be listed", group->controller.text())};
  if (group->controller.gone) return std::nullopt;
  // The first count must include all existing pods: those of an unknown ReplicaSet would count as replacements later.
  if (const Wanted* stranger = group->counted ? nullptr : stranger_of(group->controller))
    return Hold{reason::controller_unknown,
                fmt::format("waiting until {} {} has been read, which may be one of {}", stranger->question.owner.kind,
                            stranger->question.owner.name, group->controller.text())};
  if (!group->counted) count_first(*group);
  // The pod was sent an eviction whose response was lost. It counts as leaving already, so another request takes
  // nothing more.
  if (const Member* member = member_of(pod); member && member->leaving) return std::nullopt;
  if (!group->left_first && tally_of(*group).any_left) group->left_first = now;
  auto hold = held_by_canary(*group, now);
  if (!hold) hold = held_by_budget(*group, pod);
  group->holds |= hold.has_value();
  return hold;
}

TimePoint ControllerBook::homeless_told(const Member& member) const {
  return member.unschedulable_since + (has_canaries() ? guards_.canary : patience_with_homeless);
}

std::vector<ControllerBook::Unschedulable> ControllerBook::unschedulable(TimePoint now) const {
  std::vector<Unschedulable> found;
  for (const auto& [uid, group] : groups_) {
    const Member* member = homeless(group);
    if (member && homeless_told(*member) <= now)
      found.push_back({&group.controller, member->key, *member->unschedulable});
  }
  return found;
}

TimePoint ControllerBook::next_due(TimePoint now) const {
  TimePoint next = TimePoint::max();
  const auto consider = [&](TimePoint when) {
    if (when > now) next = std::min(next, when);
  };
  for (const auto* questions : {&wanted_, &strangers_})
    for (const auto& [uid, wanted] : *questions) consider(wanted.not_before);
  for (const auto& [uid, group] : groups_) {
    if (group.holds) consider(group.read_again_at);
    if (const Member* member = homeless(group)) consider(homeless_told(*member));
  }
  return next;
}

}  // namespace haulout::drain
