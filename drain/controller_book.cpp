#include "drain/controller_book.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "drain/pod_filter.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {

namespace {

// Returns true if the number of replicas can be read from the object itself. For all other kinds only the Scale
// subresource has it, if the kind has a Scale.
bool is_apps_workload(const k8s::OwnerReference& owner) {
  return owner.api_version == "apps/v1" &&
         (owner.kind == "Deployment" || owner.kind == "ReplicaSet" || owner.kind == "StatefulSet");
}

// Returns true if a ReplicaSet may belong to a Deployment, by its name: a Deployment names its ReplicaSets
// <Deployment>-<hash>.
bool may_belong_to(const ControllerQuestion& found, const Controller& controller) {
  return found.owner.kind == "ReplicaSet" && found.ns == controller.ns &&
         found.owner.name.starts_with(controller.name + "-");
}

// A ReplicaSet whose Deployment could not be found out may be one of a Deployment that holds pods. Then its pods are
// replacements that the Deployment seems to lack.
bool is_read_again(const std::map<std::string, ControllerGroup>& all, const ControllerGroup& group) {
  const Controller& top = group.controller;
  if (group.holds || top.unknown.empty() || top.gone || top.cannot_scale) return group.holds;
  const ControllerQuestion question{{top.api_version, top.kind, top.name, top.uid}, top.ns, {}};
  return std::any_of(all.begin(), all.end(), [&](const auto& entry) {
    return entry.second.holds && may_belong_to(question, entry.second.controller);
  });
}

// Calls visit(pod) for each pod of the group, in no order. `all` has the pods by their direct controller.
template <class All, class Visit>
void each_pod(All& all, const ControllerGroup& group, Visit visit) {
  for (const std::string& owner : group.owners)
    if (const auto found = all.find(owner); found != all.end())
      for (auto& [uid, pod] : found->second.pods) visit(pod);
}

// Returns how many pods of the controller lack a Ready replacement: pods that the drain evicted, and replicas that were
// missing at the first count. Each pod that has become Ready since then lowers the number, except those that replace
// pods deleted on other nodes, and those that a scale-up added. So does a scale-down, but not by the pods that it
// deleted itself. A pod on another node that only stops being Ready does not raise it.
template <class All>
std::size_t without_replacement(const All& all, const ControllerGroup& group) {
  std::int64_t ready = 0, new_ready = 0, stayed = 0, ours = 0, taken = 0, at_first = 0, new_taken = 0;
  std::int64_t broken = 0, broken_gone = 0;
  each_pod(all, group, [&](const ControlledPod& member) {
    at_first += member.ready_at_first ? 1 : 0;
    ours += member.leaving && member.ready_at_first ? 1 : 0;
    taken += member.leaving && !member.takes_nothing ? 1 : 0;
    new_taken += member.leaving && member.came_ready ? 1 : 0;
    broken += member.broken_at_first ? 1 : 0;
    broken_gone += member.broken_at_first && !member.stays() ? 1 : 0;
    if (!member.stays()) return;
    stayed += member.ready_at_first ? 1 : 0;
    ready += member.ready ? 1 : 0;
    new_ready += member.ready && !member.ready_at_first ? 1 : 0;
  });
  const std::int64_t gone_elsewhere = std::max<std::int64_t>(0, at_first - stayed - ours);
  const auto& wanted = group.controller.replicas;
  std::int64_t more = wanted && group.wanted_at_first ? std::int64_t{*wanted} - *group.wanted_at_first : 0;
  // A scale-down deletes broken pods first. These were never counted as missing, so nothing is made up for. If a broken
  // pod stays all the same, the controller has counted a pod that the drain has evicted in its place.
  const std::int64_t scaled_away = std::min(broken, std::max<std::int64_t>(0, -more));
  more += scaled_away;
  // New pods that left again replaced others, except those that a scale-up has added, and those that came for broken
  // pods: they lack a replacement themselves.
  const std::int64_t added = std::max<std::int64_t>(0, more) + std::max<std::int64_t>(0, broken_gone - scaled_away);
  const std::int64_t ceiling = taken + static_cast<std::int64_t>(group.missing_at_first) + std::min(new_taken, added);
  std::int64_t missing = std::min(ceiling, ceiling + gone_elsewhere + more - new_ready);
  if (wanted) missing = std::min(missing, *wanted - ready);
  return static_cast<std::size_t>(std::max<std::int64_t>(0, missing));
}

// Updates a member after its pod was added or changed. Returns true if the pod is new and the controller now has more
// pods that are not being deleted or evicted than it had replicas when it was last read.
bool note_pod(const auto& owners, ControllerGroup& group, ControlledPod& member, bool is_new) {
  // A pod that was broken at first and is Ready again replaces no other pod. It counts as if it had been Ready all the
  // time.
  if (member.ready && !member.terminating && member.broken_at_first) {
    member.broken_at_first = member.takes_nothing = false;
    member.ready_at_first = true;
  }
  if (!is_new || !group.controller.replicas) return false;
  std::int64_t staying = 0;
  each_pod(owners, group, [&](const ControlledPod& other) { staying += other.stays() ? 1 : 0; });
  if (staying <= *group.controller.replicas) return false;
  // The controller may have been scaled up. Then the additional pods replace no other pods, so it is read again.
  group.holds = true;
  return true;
}

}  // namespace

Controller nothing_known_of(const k8s::OwnerReference& owner, const std::string& ns, std::string why) {
  Controller controller;
  controller.ns = ns;
  controller.api_version = owner.api_version;
  controller.kind = owner.kind;
  controller.name = owner.name;
  controller.uid = owner.uid;
  controller.unknown = std::move(why);
  return controller;
}

Controller gone_controller(const k8s::OwnerReference& owner, const std::string& ns) {
  Controller controller = nothing_known_of(owner, ns, "the controller does not exist any more");
  controller.gone = true;
  return controller;
}

Controller without_scale(const k8s::OwnerReference& owner, const std::string& ns, std::string why) {
  Controller controller = nothing_known_of(owner, ns, std::move(why));
  controller.cannot_scale = true;
  return controller;
}

Controller controller_of(const k8s::OwnerReference& owner, const std::string& ns, k8s::Workload workload) {
  Controller controller = nothing_known_of(owner, ns, "");
  controller.replicas = workload.replicas;
  controller.ready_replicas = workload.ready_replicas;
  controller.annotations = std::move(workload.annotations);
  controller.rollout = std::move(workload.rollout);
  return controller;
}

Task<TopController> top_controller(k8s::OwnerReference owner, std::string ns, ReadWorkload read) {
  std::optional<Controller> below;
  // Anybody who may write ReplicaSets can make them own each other in a circle. Otherwise there are two levels.
  constexpr unsigned most_levels = 10;
  for (unsigned level = 1; is_apps_workload(owner); ++level) {
    auto found = co_await read(owner);
    if (!found && !k8s::is_gone(found.error())) co_return std::move(found).error();
    if (!found || found->uid != owner.uid) co_return TopController{owner, gone_controller(owner, ns), {}};
    if (owner.kind != "ReplicaSet" || !found->controller || level == most_levels)
      co_return TopController{owner, controller_of(owner, ns, *std::move(found)), {}};
    const k8s::OwnerReference above = *found->controller;
    below = controller_of(owner, ns, *std::move(found));
    below->in_place_of = above.uid;
    owner = above;
  }
  co_return TopController{owner, {}, std::move(below)};
}

std::string controller_key(const std::string& ns, const std::string& uid) {
  return ns + "/" + uid;
}

ControllerName name_in(std::string_view key) {
  const auto slash = key.find('/');  // the name of a namespace has none
  return {key.substr(0, slash), key.substr(slash + 1)};
}

ControllerQuestion question_about(const k8s::Replica& pod) {
  ControllerQuestion question{*pod.controller, pod.ns, {}};
  if (!pod.owned && pod.surge_mark && !pod.surge_mark->deployment_uid.empty())
    question.above =
        k8s::OwnerReference{"apps/v1", "Deployment", pod.surge_mark->deployment, pod.surge_mark->deployment_uid, true};
  return question;
}

void ControllerQuestions::want(ControllerQuestion question) {
  std::string key = question.key();
  wanted_.try_emplace(std::move(key), Open{std::move(question)});
}

void ControllerQuestions::found(ControllerQuestion question) {
  std::string key = question.key();
  found_.try_emplace(std::move(key), Open{std::move(question)});
}

void ControllerQuestions::note(ControllerQuestion question) {
  std::string key = question.key();
  asked_.try_emplace(std::move(key), std::move(question));
}

void ControllerQuestions::answered(const std::string& key) {
  for (auto* open : {&found_, &wanted_}) {
    const auto found = open->find(key);
    if (found == open->end()) continue;
    asked_.insert_or_assign(key, found->second.question);
    open->erase(found);
  }
}

void ControllerQuestions::not_answered(const std::string& key, TimePoint now) {
  for (auto* open : {&found_, &wanted_})
    if (const auto found = open->find(key); found != open->end())
      found->second.not_before = now + ControllerBook::retry;
}

bool ControllerQuestions::forbidden(const std::string& key) {
  const auto found = wanted_.find(key);
  return found != wanted_.end() && ++found->second.refusals >= 2;
}

bool ControllerQuestions::ask_again(const std::string& key) {
  const auto asked = asked_.find(key);
  if (asked == asked_.end()) return false;
  want(asked->second);
  return true;
}

const ControllerQuestion* ControllerQuestions::may_be_of(const Controller& controller) const {
  for (const auto& [uid, found] : found_)
    if (may_belong_to(found.question, controller)) return &found.question;
  return nullptr;
}

TimePoint ControllerQuestions::next_due(TimePoint now) const {
  TimePoint next = TimePoint::max();
  for (const auto* open : {&wanted_, &found_})
    for (const auto& [uid, question] : *open)
      if (question.not_before > now) next = std::min(next, question.not_before);
  return next;
}

bool is_guarded(const k8s::Replica& pod) {
  if (!pod.controller || pod.finished() || is_mirror(pod) || is_daemon_pod(pod)) return false;
  return pod.controller->kind != "Job";
}

const Controller* ControllerBook::of(const k8s::Replica& pod) const {
  const ControllerGroup* group = pod.controller ? group_at({pod.ns, pod.controller->uid}) : nullptr;
  return group ? &group->controller : nullptr;
}

ControllerGroup* ControllerBook::group_of(const k8s::Replica& pod) {
  return group_at({pod.ns, pod.controller->uid});
}

// Returns the group of a direct or top-level controller; nullptr if it was not looked up yet.
ControllerGroup* ControllerBook::group_at(const ControllerName& owner) const {
  const auto found = owners_.find(owner);
  return found == owners_.end() ? nullptr : found->second.group;
}

const ControlledPod* ControllerBook::find(const k8s::Replica& pod) const {
  const auto owner = owners_.find(ControllerName{pod.ns, pod.controller->uid});
  if (owner == owners_.end()) return nullptr;
  const auto found = owner->second.pods.find(pod.uid);
  return found == owner->second.pods.end() ? nullptr : &found->second;
}

// Moves a ReplicaSet to another top-level controller: a Deployment has adopted it, or its Deployment has released it.
// The records of its pods are kept. The old controller is not read again because of these pods.
void ControllerBook::move_owner(const std::string& owner, const std::string& top) {
  const auto entry = owners_.find(owner);
  if (entry == owners_.end() || !entry->second.group) return;
  ControllerGroup& old = *entry->second.group;
  const std::string old_top = controller_key(old.controller.ns, old.controller.uid);
  if (old_top == top) return;
  old.owners.erase(owner);
  old.holds = false;
  old.tally.reset();
  const auto found = groups_.find(top);
  entry->second.group = found == groups_.end() ? nullptr : &found->second;
  if (found != groups_.end()) merge(old, entry->second, found->second);
  if (!old.owners.empty()) return;
  owners_[old_top].group = nullptr;
  auto moved = groups_.extract(old_top);
  if (found != groups_.end()) return;
  moved.key() = top;
  groups_.insert(std::move(moved));
}

void ControllerBook::merge(ControllerGroup& old, Owner& owner, ControllerGroup& into) {
  into.tally.reset();
  if (!into.left_first) into.left_first = old.left_first;
  if (!into.counted || old.counted) return;
  for (auto& [uid, member] : owner.pods)
    if (member.leaving) member.left_before = member.takes_nothing = true;
}

void ControllerBook::learned(const std::string& owner_uid, Controller controller, TimePoint now) {
  const std::string owner = controller_key(controller.ns, owner_uid);
  const std::string key = controller_key(controller.ns, controller.uid);
  questions_.answered(owner);
  move_owner(owner, key);
  ControllerGroup& group = groups_[key];
  group.holds = false;
  group.read_again_at = now + reread;
  group.looked_at = now;
  if (controller.gone && owner == key && !group.owners.contains(key)) {
    // The Deployment may have been deleted without its ReplicaSets. The records of these stay valid until they are
    // looked up again.
    bool asks = false;
    for (const std::string& one : group.owners) asks |= questions_.ask_again(one);
    if (asks) return;
  }
  owners_[owner].group = owners_[key].group = &group;
  // A Deployment that is read again is not added to the owners: it owns no pods itself.
  if (owner != key || group.owners.empty()) group.owners.insert(owner);
  group.controller = std::move(controller);
  group.tally.reset();
}

void ControllerBook::not_answered(const ControllerQuestion& question, TimePoint now) {
  const std::string key = question.key();
  questions_.not_answered(key, now);
  ControllerGroup* group = group_at(name_in(key));
  if (!group) return;
  group->read_again_at = now + reread;
  group->looked_at = now;
}

bool ControllerBook::is_answer(const std::string& owner_uid, const Controller& controller) const {
  const std::string owner = controller_key(controller.ns, owner_uid);
  const std::string key = controller_key(controller.ns, controller.uid);
  if (groups_.contains(controller_key(controller.ns, controller.in_place_of))) return false;
  if (controller.unknown.empty() || controller.gone || controller.cannot_scale) return true;
  const auto known = groups_.find(key);
  if (known != groups_.end() && known->second.controller.unknown.empty()) return false;
  if (const ControllerGroup* before = group_at(name_in(owner)))
    return known != groups_.end() && before == &known->second;
  return questions_.wants(owner) || key != owner;
}

std::optional<ControllerQuestion> ControllerBook::next_question(TimePoint now) const {
  auto question = questions_.next(now, [this](const ControllerQuestion& found) {
    return std::any_of(groups_.begin(), groups_.end(),
                       [&](const auto& entry) { return may_belong_to(found, entry.second.controller); });
  });
  if (question) return question;
  // Looks up the top-level controller directly, because the ReplicaSet that led to it may have been deleted.
  for (const auto& [uid, group] : groups_) {
    if (group.read_again_at > now || !is_read_again(groups_, group)) continue;
    const Controller& top = group.controller;
    return ControllerQuestion{{top.api_version, top.kind, top.name, top.uid}, top.ns, {}};
  }
  return std::nullopt;
}

TimePoint ControllerBook::next_due(TimePoint now) const {
  TimePoint next = questions_.next_due(now);
  for (const auto& [uid, group] : groups_)
    if (group.read_again_at > now && is_read_again(groups_, group)) next = std::min(next, group.read_again_at);
  return next;
}

void ControllerBook::gone(const std::string& uid, TimePoint now) {
  const auto known = owner_.find(uid);
  if (known == owner_.end()) return;
  Owner& owner = owners_[known->second];
  owner_.erase(known);
  const auto found = owner.pods.find(uid);
  const bool ours = found->second.leaving;
  if (owner.group) owner.group->tally.reset();
  if (ours || found->second.here_at_first) {
    found->second.seen = false;
  } else {
    owner.pods.erase(found);
  }
  // If the drain did not evict this pod, the controller may have been scaled down, so it is read again soon.
  if (!ours && owner.group) owner.group->read_again_at = std::min(owner.group->read_again_at, now + reread_soon);
}

void ControllerBook::pod_changed(const std::string& uid, const k8s::Replica* pod, TimePoint now, WallTime wall) {
  if (!pod || !is_guarded(*pod)) return gone(uid, now);
  const ControllerName name{pod->ns, pod->controller->uid};
  // Another controller has adopted the pod since.
  if (const auto known = owner_.find(uid); known != owner_.end() && name_in(known->second) != name) gone(uid, now);
  auto owner = owners_.find(name);
  if (owner == owners_.end()) owner = owners_.try_emplace(controller_key(pod->ns, pod->controller->uid)).first;
  owner_.try_emplace(uid, owner->first);
  Owner& entry = owner->second;
  if (!entry.group) {
    questions_.found(question_about(*pod));
  } else if (!std::exchange(entry.noted, true)) {
    questions_.note(question_about(*pod));
  }
  ControlledPod& member = entry.pods[uid];
  if (member.number == 0) member.number = ++last_number_;
  const bool is_new = !member.seen;
  const bool was_homeless = !is_new && member.unschedulable.has_value();
  member.seen = true;
  member.created = pod->created;
  if (is_new) member.key = pod->key();
  member.owned = pod->owned;
  member.ready = pod->ready;
  member.terminating = pod->terminating();
  member.bound = !pod->node_name.empty();
  member.surged_elsewhere = pod->surged() && pod->node_name != node_;
  member.broken = !pod->ready && pod->created && wall > *pod->created + starting;
  member.unschedulable = member.bound ? std::nullopt : pod->unschedulable;
  if (member.unschedulable && !was_homeless) member.unschedulable_since = now;
  any_was_unschedulable_ |= member.unschedulable.has_value();
  if (!entry.group) return;
  ControllerGroup& group = *entry.group;
  group.tally.reset();
  if (group.counted && note_pod(owners_, group, member, is_new))
    group.read_again_at = std::min(group.read_again_at, now + reread_soon);
}

void ControllerBook::forget_pods() {
  for (auto& [key, owner] : owners_) {
    if (owner.group) owner.group->tally.reset();
    std::erase_if(owner.pods, [](const auto& entry) { return !entry.second.leaving && !entry.second.here_at_first; });
    for (auto& [uid, member] : owner.pods) member.seen = false;
  }
  owner_.clear();
  questions_.forget_found();
  seen_.clear();
}

void ControllerBook::leaving(const k8s::Replica& pod, bool leaves) {
  if (!is_guarded(pod)) return;
  const ControlledPod* known = find(pod);
  if (!leaves && !(known && known->leaving)) return;
  Owner& owner = owners_[controller_key(pod.ns, pod.controller->uid)];
  ControllerGroup* group = owner.group;
  ControlledPod* member = &owner.pods[pod.uid];
  member->leaving = leaves;
  if (group) group->tally.reset();
  // A pod that was created after the first count replaced another one. When it is evicted, that other pod lacks its
  // replacement again, but no further pod is missing.
  if (leaves && group && group->counted && member->seen && !member->ready_at_first) {
    member->takes_nothing = true;
    member->came_ready |= member->ready && !member->here_at_first;
  }
  if (leaves) return;
  // The first count assumed that the pod was being evicted or deleted, but it was not: correct its entry.
  if (std::exchange(member->left_before, false) && pod.ready) {
    member->takes_nothing = false;
    member->ready_at_first = true;
  }
  if (!member->seen && !member->here_at_first) owner.pods.erase(pod.uid);
  if (group && !tally_of(*group).any_left) group->left_first.reset();
}

void ControllerBook::count_first(ControllerGroup& group) {
  group.counted = true;
  group.tally.reset();
  std::size_t ready_at_first = 0;
  std::size_t broken = 0;
  std::size_t coming = 0;
  each_pod(owners_, group, [&](ControlledPod& member) {
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

// Caches the tally, because it is needed for hundreds of pods between two events.
const ControllerTally& ControllerBook::tally_of(const ControllerGroup& group) const {
  if (group.tally) return *group.tally;
  ControllerTally& tally = group.tally.emplace();
  tally.count = ++tallies_;
  tally.without_replacement = without_replacement(owners_, group);
  each_pod(owners_, group, [&](const ControlledPod& member) {
    tally.last_number = std::max(tally.last_number, member.number);
    tally.any_left |= member.leaving && !member.left_before;
    tally.any_left_before |= member.left_before;
    if (!member.seen) return;
    tally.ready += member.ready && member.stays() && !member.surged_elsewhere ? 1 : 0;
    tally.owned += member.owned && member.stays() ? 1 : 0;
    tally.found_home |= member.bound && !member.here_at_first;
    if (!member.unschedulable || member.terminating) return;
    const auto consider = [&](const ControlledPod*& longest) {
      const auto order = [](const ControlledPod& pod) { return std::pair(pod.unschedulable_since, pod.number); };
      if (!longest || order(member) < order(*longest)) longest = &member;
    };
    consider(tally.homeless_of_all);
    if (!member.here_at_first) consider(tally.homeless);
  });
  return tally;
}

std::vector<const ControlledPod*> ControllerBook::staying(const ControllerGroup& group) const {
  std::vector<const ControlledPod*> found;
  each_pod(owners_, group, [&](const ControlledPod& member) {
    if (member.stays()) found.push_back(&member);
  });
  return found;
}

bool is_read_first(ControllerBook& book, const k8s::Pod& pod, ControllerGroup& group, TimePoint now) {
  if (group.controller.gone || now - group.looked_at < ControllerBook::reread) return false;
  group.holds = true;
  group.read_again_at = std::min(group.read_again_at, now);
  book.questions().note(question_about(pod));
  return true;
}

}  // namespace haulout::drain
