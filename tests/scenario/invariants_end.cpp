// The invariants that check the end of a drain.
#include <fmt/format.h>

#include <algorithm>

#include "drain/cordon.hpp"
#include "drain/session.hpp"
#include "k8s/codec.hpp"
#include "tests/scenario/invariants.hpp"

namespace haulout::scenario {
namespace {

using namespace std::chrono_literals;

const drain::PodReport* find(const drain::Report& report, const std::string& uid) {
  for (const drain::PodReport& pod : report.pods)
    if (pod.uid == uid) return &pod;
  return nullptr;
}

bool is_left(const drain::PodReport& pod) {
  return pod.outcome == drain::PodOutcome::planned || pod.outcome == drain::PodOutcome::waiting ||
         pod.outcome == drain::PodOutcome::terminating || pod.outcome == drain::PodOutcome::refused;
}

// Returns true if late pods that policy refuses are left, which stay for ever, and no other pod except possibly those
// that are evicted after all others: members of gangs, the drain's own pod, and those of a rule.
bool waits_for_policy_alone(const drain::Report& report, const std::function<bool(const std::string& uid)>& goes_last) {
  const auto refused = [](const drain::PodReport& pod) {
    return pod.outcome == drain::PodOutcome::waiting && pod.verdict == drain::Verdict::refuse;
  };
  return std::any_of(report.pods.begin(), report.pods.end(), refused) &&
         std::all_of(report.pods.begin(), report.pods.end(),
                     [&](const drain::PodReport& pod) { return !is_left(pod) || refused(pod) || goes_last(pod.uid); });
}

}  // namespace

void Invariants::ended(const drain::Report& report) {
  note(fmt::format("the drain has ended: {}: {}", drain::to_string(report.outcome), report.message));
  switch (report.outcome) {
    case drain::Outcome::drained: end_drained(report); break;
    case drain::Outcome::refused: end_refused(report); break;
    case drain::Outcome::blocked: end_blocked(report); break;
    case drain::Outcome::cancelled:
      if (!waits_for_grace_alone(report) && !waits_for_policy_alone(report, [this](const std::string& uid) {
            const auto found = pods_.find(uid);
            return uid == given_.options.own_pod_uid || (found != pods_.end() && stage_of(found->second) > 0);
          }))
        violated("P9: not drained although nothing stands in the way any more");
      end_otherwise(report);
      break;
    case drain::Outcome::failed: end_failed(report); break;
    case drain::Outcome::node_gone: end_node_gone(); break;
  }
  check_cordon(report);
  // A drain that has not begun leaves everything as it was. One that was cancelled gives nothing back by itself.
  if (cordon_claimed_ && report.outcome != drain::Outcome::cancelled) {
    check_nothing_surged(std::string(drain::to_string(report.outcome)));
    check_withdrawn(std::string(drain::to_string(report.outcome)));
  }
  if (report.outcome == drain::Outcome::drained)
    for (const std::string& vain : vain_give_backs_) violated(vain);
  check_free_pods();
  check_asked();
  check_grace_periods();
  check_request_totals();
}

void Invariants::end_drained(const drain::Report& report) {
  const TimePoint now = clock_.now();
  if (node_gone_ && last_list_ && *node_gone_ < *last_list_)
    return violated("P4: drained, although the Node had gone before that was confirmed");
  if (!last_list_) return violated("P3: drained without a list");
  for (const auto& [uid, pod] : pods_) {
    if (pod.gone || !on_our_node(pod) || pod.bound >= *last_list_) continue;
    if (verdict(pod) != drain::Verdict::skip && !may_look_managed(pod))
      violated("P3: drained, but the pod is there: " + pod.key);
  }
  for (const drain::PodReport& pod : report.pods)
    if (is_left(pod)) violated("P4: drained, but its own report says that this pod is left: " + pod.key());
  const bool lost_just_now = !unschedulable_since_ && schedulable_since_ >= *last_list_;
  if (!unschedulable_since_ && !lost_just_now) violated("P3: drained, but the node is not cordoned");
  if (!cordon_claimed_ || now - *cordon_claimed_ < given_.options.settle)
    violated("P3: drained before the settle time was over");
  if (given_.sound_wire && unschedulable_since_ && now - *unschedulable_since_ < given_.options.settle)
    violated("P3: drained although the cordon has not been in force for the settle time");
  check_volumes();
  const bool waits = given_.options.volumes != drain::VolumeWait::off;
  for (const drain::VolumeReport& volume : report.volumes)
    if (waits && volume.reattach == drain::Reattach::waiting)
      violated("P8: drained while this volume is waited for until another node has it: " + volume.volume);
}

// Returns true if the pod may run on our node alone, so that it really has capacity nowhere else, however much other
// nodes have.
bool Invariants::selects_our_node(const std::string& uid) const {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || !found->second.last_state) return false;
  const sim::Json& selector = sim::at(*found->second.last_state, "/spec/nodeSelector");
  return selector.is_object() && selector.value("kubernetes.io/hostname", "") == given_.node;
}

// Returns true if pods are left, all of them are terminating, and their grace periods may not be over.
bool Invariants::waits_for_grace_alone(const drain::Report& report) const {
  const auto is_terminating = [this](const drain::PodReport& pod) {
    const auto found = pods_.find(pod.uid);
    return found != pods_.end() && found->second.terminating && !found->second.gone &&
           clock_.now() < found->second.place_until;
  };
  return std::any_of(report.pods.begin(), report.pods.end(), is_left) &&
         std::all_of(report.pods.begin(), report.pods.end(),
                     [&](const drain::PodReport& pod) { return !is_left(pod) || is_terminating(pod); });
}

void Invariants::end_refused(const drain::Report& report) {
  if (wrote_) violated("P4: refused, but something was touched");
  const drain::FitPolicy fit = given_.options.fit;
  const bool doubts_room = std::any_of(report.fits.begin(), report.fits.end(), [&](const placement::PodFit& one) {
    return (fit == drain::FitPolicy::require && one.fit == placement::Fit::unknown) ||
           (fit != drain::FitPolicy::warn && one.fit == placement::Fit::does_not_fit &&
            (!given_.roomy || selects_our_node(one.uid)));
  });
  // Besides, a scale-down may have made a pod the only replica.
  const bool only_replica = std::any_of(pods_.begin(), pods_.end(), [&](const auto& entry) {
    return on_our_node(entry.second) && !entry.second.gone && is_only_replica(entry.second, true);
  });
  if (!ever_refused_by_policy_ && !doubts_room && !only_replica) violated("P4: refused, but policy refuses no pod");
}

void Invariants::end_blocked(const drain::Report& report) {
  // The drain may give up before the deadline if its next attempt would be after it: up to 15 s earlier before the node
  // is cordoned, and up to 0.2 s earlier afterwards. After the deadline it withdraws its EvictionRequests, gives back
  // pods that were surged, also by an earlier drain, and then removes its cordon.
  const bool too_early =
      !given_.options.timeout || since_start() + (cordon_claimed_ ? 200ms : 15000ms) < *given_.options.timeout;
  const bool withdraws = given_.options.eviction_requests != drain::EvictionRequests::off;
  const Duration afterwards = (cordon_claimed_ ? 45s : 85s) + drain::request_timeout * (withdraws ? 2 : 1);
  if (too_early && !ended_by_volume())
    violated("P4: blocked, but no deadline has passed");
  else if (!too_early && since_start() > *given_.options.timeout + afterwards)
    violated("P4: went on long after its deadline");
  end_otherwise(report);
}

void Invariants::end_failed(const drain::Report& report) {
  if (given_.hopeless_answers) return end_otherwise(report);
  const bool had_gone = given_.node_goes && node_uid_.empty();
  const bool lacks_rights =
      given_.rights_change || (given_.as_kubelet && given_.options.volumes == drain::VolumeWait::required);
  if (!cordon_claimed_ && (lacks_rights || node_gone_ || had_gone)) return;
  // Otherwise the drain may fail only before it has cordoned the node: with `fail_fast`, if it has a deadline and could
  // not reach the server, or at the deadline.
  const bool at_deadline = given_.options.timeout && since_start() + 15000ms >= *given_.options.timeout;
  const bool unreached = given_.options.timeout && report.connection_failed;
  if (cordon_claimed_ || !(given_.options.fail_fast || unreached || at_deadline))
    violated("P9: gave up without need: " + report.message);
}

void Invariants::end_node_gone() {
  if (!node_gone_) violated("P4: node-gone, but the Node is there");
}

void Invariants::end_otherwise(const drain::Report& report) {
  for (const auto& [uid, pod] : pods_) {
    if (pod.gone || !on_our_node(pod) || !cordon_claimed_ || pod.bound > began_) continue;
    if (verdict(pod) == drain::Verdict::skip || may_look_managed(pod)) continue;
    const drain::PodReport* told = find(report, uid);
    if (!told || !is_left(*told))
      violated(fmt::format("P4: {}, and the report does not say that this pod is left: {}",
                           drain::to_string(report.outcome), pod.key));
    else if (told->outcome == drain::PodOutcome::waiting && (told->reason.empty() || told->message.empty()))
      violated("P8: this pod waits without a reason: " + pod.key);
  }
}

void Invariants::check_cordon(const drain::Report& report) {
  if (node_gone_ || (given_.node_goes && node_uid_.empty())) return;
  auto node = k8s::decode<k8s::Node>(cluster_.get("nodes", "", given_.node).dump());
  if (!node) return violated("P5: the Node cannot be read");
  const bool marked = drain::mark_of(*node).has_value();
  // The Node that a person cordoned may have been replaced before the drain first read it.
  if (given_.human_cordon && given_.node_goes) return;
  if (given_.human_cordon && !given_.human_uncordon) {
    if (!node->unschedulable) violated("P5: the cordon of a human was taken back");
    if (marked) violated("P5: the cordon of a human was marked as ours");
    return;
  }
  if (given_.human_uncordon || given_.etcd_restored) return;
  if (report.outcome == drain::Outcome::drained && report.cordon.owner != "haulout")
    violated("P5: our own cordon is told as somebody else's");
  const bool unsuccessful = report.outcome == drain::Outcome::blocked || report.outcome == drain::Outcome::failed;
  if (!unsuccessful || !cordoned_by_drain_) return;
  if (!given_.options.restore_cordon_on_failure) {
    if (!node->unschedulable) violated("P5: the node was uncordoned although it should stay");
    return;
  }
  const bool sound = given_.sound_wire || began_ + given_.healed_after <= clock_.now() - 40s;
  if (node->unschedulable && sound) violated("P5: our cordon was left behind");
  // All answers that would have shown the cordon to the drain may have been lost.
  const bool knows = node_told_ && unschedulable_since_ && *node_told_ >= *unschedulable_since_;
  if (knows && !report.cordon.after) violated("P4: the report says uncordoned, the node is cordoned");
}

// A pod that nothing holds up must not wait for pods that something holds up. The drain's own pod is exempt. The limit
// allows for every other pod to take a place first, for as long as it really took to terminate.
void Invariants::check_free_pods() {
  if (!given_.sound_wire || !given_.sound_kubelets || given_.human_uncordon || !cordon_claimed_ || node_gone_) return;
  // If a webhook admits an eviction only as a dry run, its pod keeps its place until the migration has deleted it.
  Duration all = given_.migrations_take;
  for (const auto& [uid, pod] : pods_) {
    if (!on_our_node(pod) || !pod.terminating) continue;
    all += std::min(pod.gone.value_or(clock_.now()), pod.place_until) - *pod.terminating + 600ms;
  }
  const std::size_t places = given_.options.max_concurrent;
  // While the pod waits for a place, all places are taken.
  // If the drain cannot read budgets, it sends one request at a time for each namespace. So a slow webhook delays all
  // pods of its namespace.
  const Duration in_lane = given_.as_kubelet ? given_.migrations_take : Duration::zero();
  const Duration bound = 10s + in_lane + (places == 0 ? Duration::zero() : all / static_cast<Duration::rep>(places));
  for (const auto& [uid, pod] : pods_) {
    const std::string ns = pod.key.substr(0, pod.key.find('/'));
    const bool free =
        on_our_node(pod) && pod.bound <= began_ && !touched_namespaces_.contains(ns) && !hindered_.contains(uid);
    if (!free || is_own(pod) || verdict(pod) != drain::Verdict::evict || may_look_managed(pod)) continue;
    const TimePoint until = pod.first_sent.value_or(pod.terminating.value_or(pod.gone.value_or(clock_.now())));
    if (until - *cordon_claimed_ > bound)
      violated(fmt::format("P9: {} had to wait {} s although nothing stands in its way", pod.key,
                           std::chrono::duration_cast<std::chrono::seconds>(until - *cordon_claimed_).count()));
  }
}

// The requested grace period also applies to pods that were deleted by another client.
void Invariants::check_grace_periods() {
  if (!given_.sound_wire || given_.human_uncordon || !cordon_claimed_ || node_gone_) return;
  for (const auto& [uid, pod] : pods_) {
    const std::string ns = pod.key.substr(0, pod.key.find('/'));
    if (pod.gone || !on_our_node(pod) || is_own(pod) || touched_namespaces_.contains(ns) || may_look_managed(pod))
      continue;
    // A webhook may refuse that; the drain then asks again and again. Or it turns the eviction into a dry run, so that
    // nothing happens although it is accepted.
    if (pod.shortening_refused && clock_.now() - *pod.last_sent < 60s) continue;
    if (pod.accepted && given_.migrations_take > Duration::zero()) continue;
    const TimePoint since = std::max(pod.terminating.value_or(clock_.now()), *cordon_claimed_);
    if (is_longer_than_asked(pod) && verdict(pod) == drain::Verdict::evict && clock_.now() - since > 5s)
      violated("grace: this pod still terminates with another's, longer grace period: " + pod.key);
  }
}

// The limits are 1.5 times what correct drains send under all faults. A drain that polls each pod is far above them.
void Invariants::check_request_totals() {
  std::size_t ours = 0;
  std::size_t late = 0;  // for each of these pods the drain reads the Node
  for (const auto& [uid, pod] : pods_) {
    ours += on_our_node(pod);
    late += on_our_node(pod) && pod.bound > began_;
  }
  const auto took = static_cast<std::size_t>(std::chrono::duration_cast<std::chrono::seconds>(since_start()).count());
  const std::size_t most_of_one = 8 + failures_ + late + took / 20;
  std::size_t reads = 0;
  for (const auto& [object, times] : reads_) {
    reads += times;
    if (times > most_of_one) violated(fmt::format("P10: {} times in {} s: {}", times, took, object));
  }
  const std::size_t most = 60 + 4 * ours + 3 * failures_ + throttled_ + took / 6 + took * ours / 15;
  if (requests_ - reads > most)
    violated(fmt::format("P10: {} requests for {} pods in {} s, besides {} reads of single objects", requests_ - reads,
                         ours, took, reads));
}

}  // namespace haulout::scenario
