// ControllerBook: what may be evicted now, and why not.
#include <fmt/format.h>

#include <algorithm>

#include "drain/controller_book.hpp"

namespace haulout::drain {

namespace {

std::string pods(std::size_t count) {
  return fmt::format("{} pod{}", count, count == 1 ? "" : "s");
}

std::string seconds(Duration duration) {
  return fmt::format("{} s", std::chrono::ceil<std::chrono::seconds>(duration).count());
}

}  // namespace

template <class Visit>
void ControllerBook::each_member(const Group& group, Visit visit) const {
  for (const std::string& owner : group.owners)
    if (const auto found = members_.find(owner); found != members_.end())
      for (const auto& [uid, member] : found->second) visit(uid, member);
}

// How things stood before the first pod left.
void ControllerBook::count_first(Group& group) const {
  group.counted = true;
  std::size_t broken = 0;
  std::size_t coming = 0;
  each_member(group, [&](const std::string& uid, const Member& member) {
    group.here_at_first.insert(uid);
    const bool ready = member.ready && !member.terminating;
    (ready ? group.ready_at_first : group.unready_at_first).insert(uid);
    if (!member.ready && !member.terminating) ++(member.broken ? broken : coming);
  });
  const auto& replicas = group.controller.replicas;
  const auto wanted = static_cast<std::size_t>(std::max(0, replicas.value_or(0)));
  const std::size_t accounted = group.ready_at_first.size() + broken;
  group.missing_at_first = !replicas ? coming : wanted > accounted ? wanted - accounted : 0;
}

// Pods that went and are not made up for by as many that have become Ready since. What leaves other nodes needs
// replacements, too; what merely fails elsewhere does not count.
std::size_t ControllerBook::without_replacement(const Group& group) const {
  std::size_t ready = 0;
  std::size_t new_ready = 0;
  std::size_t stayed = 0;
  each_member(group, [&](const std::string& uid, const Member& member) {
    if (member.terminating || group.leaving.contains(uid)) return;
    const bool old = group.ready_at_first.contains(uid);
    stayed += old ? 1 : 0;
    ready += member.ready ? 1 : 0;
    new_ready += member.ready && !old ? 1 : 0;
  });
  const auto ours = static_cast<std::size_t>(std::count_if(
      group.leaving.begin(), group.leaving.end(), [&](const auto& uid) { return group.ready_at_first.contains(uid); }));
  const std::size_t gone_elsewhere = group.ready_at_first.size() - std::min(group.ready_at_first.size(), stayed + ours);
  const auto taken =
      static_cast<std::size_t>(std::count_if(group.leaving.begin(), group.leaving.end(),
                                             [&](const auto& uid) { return !group.unready_at_first.contains(uid); }));
  const std::size_t ceiling = taken + group.missing_at_first;
  const std::size_t needed = ceiling + gone_elsewhere;
  std::size_t missing = std::min(ceiling, needed - std::min(needed, new_ready));
  if (group.controller.replicas) {
    const auto wanted = static_cast<std::size_t>(std::max(0, *group.controller.replicas));
    missing = std::min(missing, wanted - std::min(wanted, ready));
  }
  return missing;
}

std::optional<ControllerBook::Hold> ControllerBook::held_by_budget(const Group& group, const k8s::Pod& pod) const {
  // One that is not Ready takes nothing from those that are.
  if (!guards_.max_unavailable || !pod.ready) return std::nullopt;
  const Share share = max_unavailable_override(pod, group.controller).value_or(*guards_.max_unavailable);
  const std::size_t allowed = share_of(share, group.controller.replicas);
  const std::size_t missing = without_replacement(group);
  if (missing < allowed) return std::nullopt;
  const std::string of =
      group.controller.replicas ? fmt::format(" of its {}", *group.controller.replicas) : std::string();
  return Hold{"BlockedByControllerBudget",
              fmt::format("held back until a replacement is Ready: {} may be without {}{} ({}), and is without {}",
                          group.controller.text(), pods(allowed), of, to_string(share), missing)};
}

// A pod that came after we began and finds no node; the first one by UID.
const ControllerBook::Member* ControllerBook::homeless(const Group& group) const {
  const Member* found = nullptr;
  each_member(group, [&](const std::string& uid, const Member& member) {
    const bool is_new = !group.here_at_first.contains(uid) && !member.terminating;
    if (is_new && member.unschedulable && (!found || member.unschedulable_since < found->unschedulable_since))
      found = &member;
  });
  return found;
}

std::optional<ControllerBook::Hold> ControllerBook::held_by_canary(const Group& group, TimePoint now) const {
  if (guards_.canary <= Duration::zero() || !group.left_first) return std::nullopt;
  if (const Member* member = homeless(group)) {
    const TimePoint told = member->unschedulable_since + guards_.canary;
    return Hold{
        told <= now ? "ReplacementUnschedulable" : "AwaitingReplacement",
        fmt::format("held back because a replacement, pod {}, finds no node: {}", member->key, *member->unschedulable),
        told <= now ? TimePoint::max() : told};
  }
  bool found_home = false;
  each_member(group, [&](const std::string& uid, const Member& member) {
    found_home |= member.bound && !group.here_at_first.contains(uid);
  });
  const TimePoint until = *group.left_first + guards_.canary;
  if (found_home || until <= now) return std::nullopt;
  return Hold{"AwaitingReplacement",
              fmt::format("held back until the first replacement of {} has found a node, or for {}",
                          group.controller.text(), seconds(guards_.canary)),
              until};
}

std::optional<ControllerBook::Hold> ControllerBook::held(const k8s::Pod& pod, TimePoint now) {
  if (!guards_.follows_pods() || !guarded(pod)) return std::nullopt;
  Group* group = group_of(pod);
  if (!group) {
    want(pod);
    return Hold{"ControllerUnknown",
                fmt::format("held back until its {} {} was looked up", pod.controller->kind, pod.controller->name)};
  }
  if (!seen_.contains(pod.ns))
    return Hold{"ControllerUnknown",
                fmt::format("held back until the pods of {} on other nodes can be seen", group->controller.text())};
  if (group->controller.gone) return std::nullopt;
  if (!group->counted) count_first(*group);
  if (!group->leaving.empty() && !group->left_first) group->left_first = now;
  auto hold = held_by_canary(*group, now);
  if (!hold) hold = held_by_budget(*group, pod);
  group->holds |= hold.has_value();
  return hold;
}

std::vector<ControllerBook::Unschedulable> ControllerBook::unschedulable(TimePoint now) const {
  std::vector<Unschedulable> found;
  if (guards_.canary <= Duration::zero()) return found;
  for (const auto& [uid, group] : groups_) {
    const Member* member = group.left_first ? homeless(group) : nullptr;
    if (member && member->unschedulable_since + guards_.canary <= now)
      found.push_back({&group.controller, member->key, *member->unschedulable});
  }
  return found;
}

TimePoint ControllerBook::next_due(TimePoint now) const {
  TimePoint next = TimePoint::max();
  const auto consider = [&](TimePoint when) {
    if (when > now) next = std::min(next, when);
  };
  for (const auto& [uid, wanted] : wanted_) consider(wanted.not_before);
  for (const auto& [uid, group] : groups_) {
    if (group.holds) consider(group.read_again_at);
    if (const Member* member = group.left_first ? homeless(group) : nullptr)
      consider(member->unschedulable_since + guards_.canary);
  }
  return next;
}

}  // namespace haulout::drain
