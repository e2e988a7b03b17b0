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

void ControllerBook::learned(const std::string& owner_uid, Controller controller, TimePoint now) {
  for (auto* questions : {&strangers_, &asked_})
    if (const auto found = questions->find(owner_uid); found != questions->end()) asked_[owner_uid] = found->second;
  if (const auto found = wanted_.find(owner_uid); found != wanted_.end()) asked_[owner_uid] = found->second.question;
  wanted_.erase(owner_uid);
  strangers_.erase(owner_uid);
  const std::string uid = controller.uid;
  tops_[owner_uid] = uid;
  Group& group = groups_[uid];
  group.controller = std::move(controller);
  group.owners.insert(owner_uid);
  group.leaving.merge(early_[owner_uid]);
  early_.erase(owner_uid);
  group.holds = false;
  group.read_again_at = now + reread;
}

void ControllerBook::not_answered(const std::string& owner_uid, TimePoint now) {
  strangers_.erase(owner_uid);  // its pods speak of it again
  if (const auto found = wanted_.find(owner_uid); found != wanted_.end()) found->second.not_before = now + retry;
  if (const auto top = tops_.find(owner_uid); top != tops_.end()) groups_.at(top->second).read_again_at = now + reread;
}

std::optional<ControllerQuestion> ControllerBook::next_question(TimePoint now) const {
  for (const auto& [uid, wanted] : wanted_)
    if (wanted.not_before <= now) return wanted.question;
  for (const auto& [uid, question] : strangers_)
    for (const auto& [top, group] : groups_)
      if (may_belong_to(question.owner, question.ns, group.controller)) return question;
  for (const auto& [uid, group] : groups_) {
    if (!group.holds || group.read_again_at > now) continue;
    for (const std::string& owner : group.owners)
      if (const auto asked = asked_.find(owner); asked != asked_.end()) return asked->second;
  }
  return std::nullopt;
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
  (tops_.contains(owner) ? asked_ : strangers_).try_emplace(owner, ControllerQuestion{*pod->controller, pod->ns});
  Member& member = members_[owner][uid];
  const bool was_homeless = member.unschedulable.has_value();
  member.key = pod->key();
  member.ready = pod->ready;
  member.terminating = pod->terminating();
  member.bound = !pod->node_name.empty();
  member.broken = !pod->ready && pod->created && wall > *pod->created + starting;
  member.unschedulable = member.bound ? std::nullopt : pod->unschedulable;
  if (member.unschedulable && !was_homeless) member.unschedulable_since = now;
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
  if (leaves || group->leaving.erase(pod.uid) == 0) return;
  if (group->leaving.empty()) group->left_first.reset();
}

}  // namespace haulout::drain
