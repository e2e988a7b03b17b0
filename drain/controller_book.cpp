#include "drain/controller_book.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "k8s/objects.hpp"

namespace haulout::drain {

namespace {

// Returns true if a ReplicaSet may belong to a Deployment, by its name: a Deployment names its ReplicaSets
// <Deployment>-<hash>.
bool may_belong_to(const k8s::OwnerReference& owner, const std::string& ns, const Controller& controller) {
  return owner.kind == "ReplicaSet" && ns == controller.ns && owner.name.starts_with(controller.name + "-");
}

}  // namespace

bool ControllerBook::guarded(const k8s::Pod& pod) {
  if (!pod.controller || pod.finished() || is_mirror(pod) || is_daemon_pod(pod)) return false;
  return pod.controller->kind != "Job";
}

const Controller* ControllerBook::of(const k8s::Pod& pod) const {
  return pod.controller ? of_owner(pod.controller->uid) : nullptr;
}

const Controller* ControllerBook::of_owner(const std::string& owner_uid) const {
  const auto top = tops_.find(owner_uid);
  return top == tops_.end() ? nullptr : &groups_.at(top->second).controller;
}

ControllerBook::Group* ControllerBook::group_of(const k8s::Pod& pod) {
  const auto top = tops_.find(pod.controller->uid);
  return top == tops_.end() ? nullptr : &groups_.at(top->second);
}

void ControllerBook::want(const k8s::Pod& pod) {
  wanted_.try_emplace(pod.controller->uid, Wanted{{*pod.controller, pod.ns}, {}});
}

ControllerBook::Member* ControllerBook::member_of(const k8s::Pod& pod) {
  const auto members = members_.find(pod.controller->uid);
  if (members == members_.end()) return nullptr;
  const auto member = members->second.find(pod.uid);
  return member == members->second.end() ? nullptr : &member->second;
}

void ControllerBook::changed(const std::string& owner_uid) {
  if (const auto top = tops_.find(owner_uid); top != tops_.end()) groups_.at(top->second).tallied = false;
}

// Moves a ReplicaSet to another top-level controller: a Deployment has adopted it, or its Deployment has released it.
// Its pods keep what was counted of them. The old group is not read again for the sake of these pods.
void ControllerBook::move_owner(const std::string& owner_uid, const std::string& top) {
  const auto before = tops_.find(owner_uid);
  if (before == tops_.end() || before->second == top) return;
  const std::string old_top = before->second;
  Group& old = groups_.at(old_top);
  old.owners.erase(owner_uid);
  old.holds = false;
  old.tallied = false;
  const auto found = groups_.find(top);
  if (found != groups_.end()) merge(old, owner_uid, found->second);
  if (!old.owners.empty()) return;
  auto moved = groups_.extract(old_top);
  tops_.erase(old_top);
  if (found != groups_.end()) return;
  moved.key() = top;
  groups_.insert(std::move(moved));
}

void ControllerBook::merge(Group& old, const std::string& owner_uid, Group& into) {
  into.tallied = false;
  if (!into.left_first) into.left_first = old.left_first;
  if (!into.counted || old.counted) return;
  for (auto& [uid, member] : members_[owner_uid])
    if (member.leaving) member.left_before = member.takes_nothing = true;
}

void ControllerBook::learned(const std::string& owner_uid, Controller controller, TimePoint now) {
  for (auto* questions : {&strangers_, &wanted_}) {
    const auto found = questions->find(owner_uid);
    if (found == questions->end()) continue;
    asked_.insert_or_assign(owner_uid, found->second.question);
    questions->erase(found);
  }
  const std::string uid = controller.uid;
  move_owner(owner_uid, uid);
  Group& group = groups_[uid];
  group.holds = false;
  group.read_again_at = now + reread;
  if (controller.gone && owner_uid == uid && !group.owners.contains(uid)) {
    // The Deployment may have been deleted without its ReplicaSets. What is known of them stays valid until they are
    // looked up again.
    bool asks = false;
    for (const std::string& owner : group.owners)
      if (const auto asked = asked_.find(owner); asked != asked_.end()) {
        wanted_.try_emplace(owner, Wanted{asked->second, {}, 0});
        asks = true;
      }
    if (asks) return;
  }
  tops_[owner_uid] = uid;
  tops_[uid] = uid;
  // A Deployment that is read again is not added to the owners: it owns no pods itself.
  if (owner_uid != uid || group.owners.empty()) group.owners.insert(owner_uid);
  group.controller = std::move(controller);
  group.tallied = false;
}

void ControllerBook::not_answered(const std::string& owner_uid, TimePoint now) {
  for (auto* questions : {&strangers_, &wanted_})
    if (const auto found = questions->find(owner_uid); found != questions->end())
      found->second.not_before = now + retry;
  if (const auto top = tops_.find(owner_uid); top != tops_.end()) groups_.at(top->second).read_again_at = now + reread;
}

bool ControllerBook::is_answer(const std::string& owner_uid, const Controller& controller) const {
  if (groups_.contains(controller.in_place_of)) return false;
  if (controller.unknown.empty() || controller.gone || controller.cannot_scale) return true;
  const auto known = groups_.find(controller.uid);
  if (known != groups_.end() && known->second.controller.unknown.empty()) return false;
  if (const Controller* before = of_owner(owner_uid)) return before->uid == controller.uid;
  return wanted_.contains(owner_uid) || controller.uid != owner_uid;
}

bool ControllerBook::forbidden(const std::string& owner_uid) {
  const auto found = wanted_.find(owner_uid);
  return found != wanted_.end() && ++found->second.refusals >= 2;
}

std::optional<ControllerQuestion> ControllerBook::next_question(TimePoint now) const {
  for (const auto& [uid, wanted] : wanted_)
    if (wanted.not_before <= now) return wanted.question;
  for (const auto& [uid, stranger] : strangers_) {
    if (stranger.not_before > now) continue;
    for (const auto& [top, group] : groups_)
      if (may_belong_to(stranger.question.owner, stranger.question.ns, group.controller)) return stranger.question;
  }
  // Asks for the top-level controller, because the ReplicaSet that led to it may have been deleted.
  for (const auto& [uid, group] : groups_) {
    if (!group.holds || group.read_again_at > now) continue;
    const Controller& top = group.controller;
    return ControllerQuestion{{top.api_version, top.kind, top.name, top.uid}, top.ns};
  }
  return std::nullopt;
}

// Returns a ReplicaSet that was not looked up yet and may belong to `controller`, or nullptr.
const ControllerBook::Wanted* ControllerBook::stranger_of(const Controller& controller) const {
  for (const auto& [uid, stranger] : strangers_)
    if (may_belong_to(stranger.question.owner, stranger.question.ns, controller)) return &stranger;
  return nullptr;
}

void ControllerBook::gone(const std::string& uid, TimePoint now) {
  const auto owner = owner_.find(uid);
  if (owner == owner_.end()) return;
  const std::string owner_uid = owner->second;
  owner_.erase(owner);
  Members& members = members_[owner_uid];
  const auto found = members.find(uid);
  const bool ours = found->second.leaving;
  changed(owner_uid);
  if (ours || found->second.here_at_first) {
    found->second.seen = false;
  } else {
    members.erase(found);
  }
  // The drain did not evict this pod, so the controller may have been scaled down: read it again soon.
  const auto top = tops_.find(owner_uid);
  if (ours || top == tops_.end()) return;
  Group& group = groups_.at(top->second);
  group.read_again_at = std::min(group.read_again_at, now + reread_soon);
}

void ControllerBook::pod_changed(const std::string& uid, const k8s::Pod* pod, TimePoint now, WallTime wall) {
  if (!pod || !guarded(*pod)) return gone(uid, now);
  const std::string& owner = pod->controller->uid;
  owner_[uid] = owner;
  const ControllerQuestion question{*pod->controller, pod->ns};
  const auto top = tops_.find(owner);
  if (top != tops_.end()) {
    asked_.try_emplace(owner, question);
  } else {
    strangers_.try_emplace(owner, Wanted{question, {}, 0});
  }
  Member& member = members_[owner][uid];
  const bool is_new = !member.seen;
  const bool was_homeless = !is_new && member.unschedulable.has_value();
  member.seen = true;
  member.key = pod->key();
  member.ready = pod->ready;
  member.terminating = pod->terminating();
  member.bound = !pod->node_name.empty();
  member.broken = !pod->ready && pod->created && wall > *pod->created + starting;
  member.unschedulable = member.bound ? std::nullopt : pod->unschedulable;
  if (member.unschedulable && !was_homeless) member.unschedulable_since = now;
  if (top == tops_.end()) return;
  Group& group = groups_.at(top->second);
  group.tallied = false;
  if (group.counted && note_member(group, member, is_new))
    group.read_again_at = std::min(group.read_again_at, now + reread_soon);
}

// Updates a member after its pod was added or changed. Returns true if, with this new pod, more pods stay than the
// controller had replicas when it was last read.
bool ControllerBook::note_member(Group& group, Member& member, bool is_new) const {
  // A pod that was broken at first and is Ready again replaces no other pod. It counts as if it had been Ready all the
  // time.
  if (member.ready && !member.terminating && member.broken_at_first) {
    member.broken_at_first = member.takes_nothing = false;
    member.ready_at_first = true;
  }
  if (!is_new || !group.controller.replicas) return false;
  std::int64_t staying = 0;
  each_known(group,
             [&](const Member& other) { staying += other.seen && !other.terminating && !other.leaving ? 1 : 0; });
  if (staying <= *group.controller.replicas) return false;
  // The controller may have been scaled up. If so, the additional pods replace nothing, so it is read again.
  group.holds = true;
  return true;
}

void ControllerBook::forget_pods() {
  for (auto& [owner, members] : members_) {
    changed(owner);
    std::erase_if(members, [](const auto& entry) { return !entry.second.leaving && !entry.second.here_at_first; });
    for (auto& [uid, member] : members) member.seen = false;
  }
  owner_.clear();
  strangers_.clear();
  seen_.clear();
}

void ControllerBook::leaving(const k8s::Pod& pod, bool leaves) {
  if (!guarded(pod)) return;
  Member* member = member_of(pod);
  if (!leaves && !(member && member->leaving)) return;
  if (!member) member = &members_[pod.controller->uid][pod.uid];
  member->leaving = leaves;
  changed(pod.controller->uid);
  Group* group = group_of(pod);
  // A pod that came after the first count replaced another one. When it leaves, it stops doing so and takes nothing
  // else.
  if (leaves && group && group->counted && member->seen && !member->ready_at_first) member->takes_nothing = true;
  if (leaves) return;
  // The pod was not leaving when the group was counted first, contrary to what the book assumed.
  if (std::exchange(member->left_before, false) && pod.ready) {
    member->takes_nothing = false;
    member->ready_at_first = true;
  }
  if (!member->seen && !member->here_at_first) members_[pod.controller->uid].erase(pod.uid);
  if (group && !tally_of(*group).any_left) group->left_first.reset();
}

}  // namespace haulout::drain
