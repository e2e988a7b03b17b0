#include "drain/controller_book.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "k8s/entries.hpp"

namespace haulout::drain {

namespace {

// A Deployment calls its ReplicaSets <its own name>-<hash>.
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

// Its ReplicaSet was adopted, or stands alone now: what was counted goes along, and nobody asks for its sake any more.
void ControllerBook::move_owner(const std::string& owner_uid, const std::string& top) {
  const auto before = tops_.find(owner_uid);
  if (before == tops_.end() || before->second == top) return;
  const std::string old_top = before->second;
  Group& old = groups_.at(old_top);
  old.owners.erase(owner_uid);
  old.holds = false;
  if (!old.owners.empty()) return;
  auto moved = groups_.extract(old_top);
  tops_.erase(old_top);
  if (const auto found = groups_.find(top); found != groups_.end()) {
    Group& group = found->second;
    group.leaving.merge(old.leaving);
    if (!group.left_first) group.left_first = old.left_first;
    if (!group.counted || !old.counted) return;
    group.here_at_first.merge(old.here_at_first);
    group.ready_at_first.merge(old.ready_at_first);
    group.broken_at_first.merge(old.broken_at_first);
    group.take_nothing.merge(old.take_nothing);
    group.left_before.merge(old.left_before);
    return;
  }
  moved.key() = top;
  groups_.insert(std::move(moved));
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
    // Its ReplicaSets may have been left to themselves: what is known holds until they have been asked.
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
  // A Deployment that was read again owns no pods itself.
  if (owner_uid != uid || group.owners.empty()) group.owners.insert(owner_uid);
  group.controller = std::move(controller);
  group.leaving.merge(early_[owner_uid]);
  early_.erase(owner_uid);
}

void ControllerBook::not_answered(const std::string& owner_uid, TimePoint now) {
  for (auto* questions : {&strangers_, &wanted_})
    if (const auto found = questions->find(owner_uid); found != questions->end())
      found->second.not_before = now + retry;
  if (const auto top = tops_.find(owner_uid); top != tops_.end()) groups_.at(top->second).read_again_at = now + reread;
}

bool ControllerBook::is_answer(const std::string& owner_uid, const Controller& controller) const {
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
  // The one at the top: a ReplicaSet of it may be gone meanwhile.
  for (const auto& [uid, group] : groups_) {
    if (!group.holds || group.read_again_at > now) continue;
    const Controller& top = group.controller;
    return ControllerQuestion{{top.api_version, top.kind, top.name, top.uid}, top.ns};
  }
  return std::nullopt;
}

// A new ReplicaSet that may be this one's; null: none.
const ControllerBook::Wanted* ControllerBook::stranger_of(const Controller& controller) const {
  for (const auto& [uid, stranger] : strangers_)
    if (may_belong_to(stranger.question.owner, stranger.question.ns, controller)) return &stranger;
  return nullptr;
}

void ControllerBook::pod_changed(const std::string& uid, const k8s::Pod* pod, TimePoint now, WallTime wall) {
  if (!pod || !guarded(*pod)) {
    const auto owner = owner_.find(uid);
    if (owner == owner_.end()) return;
    members_[owner->second].erase(uid);
    const auto top = tops_.find(owner->second);
    owner_.erase(owner);
    if (top == tops_.end()) return;
    // Somebody else had it removed: perhaps fewer are wanted.
    Group& group = groups_.at(top->second);
    if (!group.leaving.contains(uid)) group.read_again_at = std::min(group.read_again_at, now + reread_soon);
    return;
  }
  const std::string& owner = pod->controller->uid;
  owner_[uid] = owner;
  const ControllerQuestion question{*pod->controller, pod->ns};
  if (tops_.contains(owner)) {
    asked_.try_emplace(owner, question);
  } else {
    strangers_.try_emplace(owner, Wanted{question, {}, 0});
  }
  const auto [found, is_new] = members_[owner].try_emplace(uid);
  Member& member = found->second;
  const bool was_homeless = member.unschedulable.has_value();
  member.key = pod->key();
  member.ready = pod->ready;
  member.terminating = pod->terminating();
  member.bound = !pod->node_name.empty();
  member.broken = !pod->ready && pod->created && wall > *pod->created + starting;
  member.unschedulable = member.bound ? std::nullopt : pod->unschedulable;
  if (member.unschedulable && !was_homeless) member.unschedulable_since = now;
  note_member(owner, uid, is_new, member.ready && !member.terminating, now);
}

void ControllerBook::note_member(const std::string& owner_uid, const std::string& uid, bool is_new, bool ready,
                                 TimePoint now) {
  const auto top = tops_.find(owner_uid);
  if (top == tops_.end()) return;
  Group& group = groups_.at(top->second);
  if (!group.counted) return;
  // One that has recovered makes up for nobody: it is as if it had been Ready all the time.
  if (ready && group.broken_at_first.erase(uid) > 0) {
    group.take_nothing.erase(uid);
    group.ready_at_first.insert(uid);
  }
  if (!is_new || !group.controller.replicas) return;
  std::int64_t staying = 0;
  each_member(group, [&](const std::string& other, const Member& member) {
    staying += !member.terminating && !group.leaving.contains(other) ? 1 : 0;
  });
  if (staying <= *group.controller.replicas) return;
  // More may be wanted by now: then those that come replace nothing.
  group.holds = true;
  group.read_again_at = std::min(group.read_again_at, now + reread_soon);
}

void ControllerBook::forget_pods() {
  members_.clear();
  owner_.clear();
  strangers_.clear();
  seen_.clear();
}

void ControllerBook::leaving(const k8s::Pod& pod, bool leaves) {
  if (!guarded(pod)) return;
  Group* group = group_of(pod);
  if (!group) {
    auto& early = early_[pod.controller->uid];
    if (leaves) early.insert(pod.uid);
    if (!leaves) early.erase(pod.uid);
    return;
  }
  if (leaves) group->leaving.insert(pod.uid);
  // One that came after we began made up for another, and does so no more: that is all it takes.
  if (leaves && group->counted && owner_.contains(pod.uid) && !group->ready_at_first.contains(pod.uid))
    group->take_nothing.insert(pod.uid);
  if (leaves || group->leaving.erase(pod.uid) == 0) return;
  if (!has_left(*group)) group->left_first.reset();
}

}  // namespace haulout::drain
