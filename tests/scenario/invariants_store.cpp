// What the invariants read from the store: each pod instance with its history, and the Node.
#include <algorithm>

#include "drain/cordon.hpp"
#include "k8s/codec.hpp"
#include "tests/scenario/invariants.hpp"

namespace haulout::scenario {
namespace {

using namespace std::chrono_literals;

constexpr Duration place_margin = 60s;
// A drain cannot distinguish another cordon from its own if it was set within this time after its own. This is
// drain::mark_tolerance plus 2 s, because those times are whole seconds.
constexpr Duration cordons_look_alike = drain::mark_tolerance + 2s;

}  // namespace

drain::Verdict Invariants::verdict(const Instance& pod) const {
  if (left_pinned_.contains(pod.pod.uid)) return drain::Verdict::skip;
  if (pod.had_finished && given_.options.policy.finished == drain::Treatment::skip) return drain::Verdict::skip;
  const auto decided = drain::decide(pod.pod, given_.options.policy, daemon_sets_, clock_.wall_now(),
                                     {draining_for(), is_in_place(pod) ? "it is in place of an evicted one" : "",
                                      is_in_broken_gang(pod)})
                           .verdict;
  return decided == drain::Verdict::evict && is_only_replica(pod) ? drain::Verdict::refuse : decided;
}

bool Invariants::is_selected_daemon(const Instance& pod) const {
  const auto& selectors = given_.options.policy.evict_daemon_sets;
  if (!drain::is_daemon_pod(pod.pod)) return false;
  const auto state = daemon_sets_.find(pod.pod.controller->uid);
  return (state == daemon_sets_.end() || state->second != drain::DaemonSetState::gone) &&
         std::any_of(selectors.begin(), selectors.end(),
                     [&pod](const auto& selector) { return selector.matches(pod.pod.labels); });
}

// True for a pod of a DaemonSet if the drain has asked for the eviction of another pod of it, and for the drain's own
// pod.
bool Invariants::is_in_place(const Instance& pod) const {
  if (!drain::is_daemon_pod(pod.pod)) return false;
  if (is_own(pod)) return is_selected_daemon(pod);
  return std::any_of(pods_.begin(), pods_.end(), [&pod](const auto& entry) {
    const Instance& other = entry.second;
    return &other != &pod && other.first_sent && drain::is_daemon_pod(other.pod) &&
           other.pod.controller->uid == pod.pod.controller->uid;
  });
}

// True for a pod of a DaemonSet if the drain may have been unable to look up the DaemonSet. The drain does not wait
// long for that look-up.
bool Invariants::may_look_managed(const Instance& pod) const {
  return (given_.as_kubelet || !given_.sound_wire) && drain::is_daemon_pod(pod.pod);
}

void Invariants::see(const sim::Change& change) {
  if (change.key.resource == "nodes") return see_node(change);
  if (change.key.resource == "poddisruptionbudgets") return see_budget(change);
  if (change.key.resource == "namespaces" && sim::terminating(*change.object))
    touched_namespaces_.insert(change.key.name);
  if (change.key.resource == "daemonsets") daemon_sets_[sim::uid_of(*change.object)] = drain::DaemonSetState::exists;
  if (change.key.resource == "volumeattachments") {
    attached_since_.try_emplace(sim::uid_of(*change.object), clock_.now());
    if (change.type == sim::ChangeType::deleted && sim::text(*change.object, "/spec/nodeName") == given_.node) {
      const std::string volume = sim::text(*change.object, "/spec/source/persistentVolumeName");
      detached_[volume] = clock_.now();
      note("volume " + volume + " is detached");
    }
  }
  if (change.key.resource == "replicasets" || change.key.resource == "deployments") see_rollout(change);
  if (change.key.resource != "pods") return;
  const TimePoint now = clock_.now();
  Instance& pod = pods_[sim::uid_of(*change.object)];
  pod.key = change.key.ns + "/" + change.key.name;
  pod.node = sim::text(*change.object, "/spec/nodeName");
  pod.first_seen = std::min(pod.first_seen, now);
  pod.labels = sim::at(*change.object, "/metadata/labels");
  if (on_our_node(pod))
    if (auto decoded = k8s::decode<k8s::Pod>(change.object->dump())) {
      pod.pod = *std::move(decoded);
      if (!pod.pod.terminating()) pod.had_finished = pod.pod.finished();
      if (!pod.had_finished)
        pod.finished.reset();
      else if (!pod.finished)
        pod.finished = now;
      // Any DaemonSet that exists appeared in the store before its pods.
      if (drain::is_daemon_pod(pod.pod)) daemon_sets_.try_emplace(pod.pod.controller->uid, drain::DaemonSetState::gone);
    }
  if (change.restored) see_again(pod);
  if (!pod.node.empty()) pod.bound = std::min(pod.bound, now);
  see_ready(pod, *change.object);
  see_surge(pod, change);
  if (on_our_node(pod) && !sim::terminating(*change.object) && change.type != sim::ChangeType::deleted)
    pod.last_state = change.object;
  if (sim::terminating(*change.object)) {
    // The place ends one minute after the deletionTimestamp (in whole seconds), or when the drain stops waiting.
    const Duration margin = std::min(place_margin, given_.options.policy.skip_terminating_after.value_or(place_margin));
    const auto due = pod.pod.deletion_timestamp;
    const Duration left = due ? std::chrono::duration_cast<Duration>(*due - clock_.wall_now()) : Duration::zero();
    pod.place_until = std::min(pod.place_until, now + left + margin - 1s);
    if (!pod.terminating && on_our_node(pod)) note("pod " + pod.key + " is terminating");
    if (!pod.terminating) pod.terminating = now;
    // A pod that a backup brings back terminating ended before.
    if (!change.restored && !pod.had_finished && !pod.cut_off && now > std::max(began_, pod.bound)) pod.cut_off = now;
  } else if (!change.restored) {
    pod.cut_off.reset();  // the drain learns from its next list what a restored backup has undone
  }
  if (change.type == sim::ChangeType::deleted) {
    pod.gone = now;
    if (on_our_node(pod)) note("pod " + pod.key + " has vanished");
    return;
  }
  if (on_our_node(pod) && pod.bound == now) note("pod " + pod.key + " is bound");
  if (!on_our_node(pod)) return;
  const bool managed = may_look_managed(pod) && given_.options.policy.daemon_set == drain::Treatment::refuse;
  if (verdict(pod) == drain::Verdict::refuse || managed) ever_refused_by_policy_ = true;
}

// Resets the instance as if the pod were new. The restore has undone its changes, and the drain has not received the
// watch events yet.
void Invariants::see_again(Instance& pod) const {
  pod.gone.reset();
  pod.terminating.reset();
  pod.accepted = pod.evicted_by_us = false;
  ++pod.life;
  pod.restored_at = clock_.now();
  pod.in_flight = 0;  // requests still in flight belong to its previous life
  pod.place_until = pod.bound = TimePoint::max();
}

void Invariants::see_ready(Instance& pod, const sim::Json& object) {
  for (const sim::Json& owner : sim::at(object, "/metadata/ownerReferences"))
    if (sim::flag(owner, "/controller")) {
      pod.adopted |= pod.controller.empty() && pod.first_seen < clock_.now();
      pod.controller = sim::text(owner, "/uid");
    }
  const bool ready = sim::text(sim::condition(object, "Ready"), "/status") == "True";
  if (!ready && pod.ready_since) pod.unready_since = clock_.now();
  if (!ready)
    pod.ready_since.reset();
  else if (!pod.ready_since)
    pod.ready_since = clock_.now();
}

void Invariants::see_node(const sim::Change& change) {
  if (change.key.name != given_.node) return;
  if (change.type == sim::ChangeType::deleted && sim::uid_of(*change.object) == node_uid_) node_gone_ = clock_.now();
  const bool unschedulable = sim::flag(*change.object, "/spec/unschedulable");
  // A cordon that a backup has restored still belongs to its former owner.
  if (change.restored && unschedulable && !sim::annotation(*change.object, "haulout.dev/cordon").empty()) {
    persons_cordon_.reset();
    drains_cordon_ = clock_.now();
  }
  if (unschedulable == unschedulable_since_.has_value()) return;
  note(unschedulable ? "node is unschedulable" : "node is schedulable");
  unschedulable_since_ = unschedulable ? std::optional(clock_.now()) : std::nullopt;
  if (unschedulable && !change.restored)
    // If the drain wrote the cordon, see_node_written() resets the value at the same virtual time.
    persons_cordon_ = clock_.now();
  if (!unschedulable) schedulable_since_ = clock_.now();
}

// Called when the server has applied the drain's write to the Node, at the same virtual time.
void Invariants::see_node_written() {
  if (!node_uid_.empty() && sim::uid_of(cluster_.get("nodes", "", given_.node)) != node_uid_)
    violated("P5: another Node of the same name was written to");
  const TimePoint now = clock_.now();
  if (unschedulable_since_ == now) {
    drains_cordon_ = now;
    persons_cordon_.reset();
  }
  const bool taken_back = !unschedulable_since_ && schedulable_since_ == now;
  if (taken_back && persons_cordon_ && (!drains_cordon_ || *persons_cordon_ - *drains_cordon_ > cordons_look_alike))
    violated("P5: a cordon was taken back that a person had set after ours");
}

}  // namespace haulout::scenario
