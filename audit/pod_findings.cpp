#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include "audit/findings.hpp"
#include "audit/words.hpp"
#include "base/duration.hpp"
#include "drain/diagnoses.hpp"
#include "drain/reasons.hpp"

namespace haulout::audit {
namespace {

using Pods = std::vector<std::size_t>;
using drain::Verdict;

// Pods may take longer than this to terminate without a finding.
constexpr Duration long_grace = std::chrono::minutes(10);

// Returns what the filter with this reason says about the pod; nullptr if it does not apply.
const drain::Finding* filter_of(const WorldPod& pod, std::string_view reason) {
  const auto found = std::ranges::find(pod.decision.findings, reason, &drain::Finding::reason);
  return found == pod.decision.findings.end() ? nullptr : &*found;
}

// Returns the pods of the group that leave and to which the filter applies. Sets *refused if it makes a drain refuse.
Pods with_filter(const World& world, const Group& group, std::string_view reason, bool* refused) {
  Pods pods;
  for (const std::size_t index : group.pods) {
    const WorldPod& pod = world.pods[index];
    const drain::Finding* filter = pod.leaves() ? filter_of(pod, reason) : nullptr;
    if (!filter) continue;
    *refused = *refused || filter->verdict == Verdict::refuse;
    pods.push_back(index);
  }
  return pods;
}

void find_empty_dirs(const World& world, const Group& group, Findings& findings) {
  bool refused = false;
  const Pods pods = with_filter(world, group, reason::empty_dir, &refused);
  findings.add({.id = reason::empty_dir,
                .severity = refused ? Severity::blocks : Severity::note,
                .text = fmt::format("{} with emptyDir volumes, whose data the eviction deletes{}",
                                    count_of_pods(pods.size()), refused ? "; the drain refuses to do that" : ""),
                .way_out = "keep data that must survive in a PersistentVolumeClaim; a drain by hand needs "
                           "--delete-emptydir-data, and agents evict such pods unless --emptydir is refuse"},
               pods);
}

void find_unmanaged(const World& world, const Group& group, Findings& findings) {
  bool refused = false;
  const Pods pods = with_filter(world, group, reason::unmanaged, &refused);
  findings.add({.id = "UnmanagedPod",
                .severity = refused ? Severity::blocks : Severity::risk,
                .text = fmt::format("it has no controller, so nothing creates it again after an eviction{}",
                                    refused ? "; the drain refuses to evict it" : ""),
                .way_out = "run it by a Deployment, a StatefulSet or a Job; a drain by hand needs --force, and agents "
                           "evict it unless --unmanaged is refuse or skip"},
               pods);
}

void find_long_grace(const World& world, const Group& group, Findings& findings) {
  Pods pods;
  std::int64_t longest = 0;
  for (const std::size_t index : group.pods) {
    const WorldPod& pod = world.pods[index];
    if (!pod.leaves() || k8s::grace_period(pod.pod.grace_seconds) <= long_grace) continue;
    longest = std::max(longest, pod.pod.grace_seconds);
    pods.push_back(index);
  }
  findings.add(
      {.id = "LongGrace",
       .severity = Severity::risk,
       .text = fmt::format("its pods may take {} to terminate, so a drain may take as long",
                           format_whole_seconds(k8s::grace_period(longest))),
       .way_out = "lower terminationGracePeriodSeconds to what the pods need, or plan the drain for that time"},
      pods);
}

// Pods that a filter holds for another reason than those above, such as an annotation or a rule.
void find_held(const World& world, const Group& group, Findings& findings) {
  std::map<std::string, Pods> held;
  for (const std::size_t index : group.pods) {
    const WorldPod& pod = world.pods[index];
    const std::string& why = pod.decision.reason;
    const bool holds = pod.decision.verdict == Verdict::park || pod.decision.verdict == Verdict::refuse;
    if (!pod.leaves() || !holds || why == reason::empty_dir || why == reason::unmanaged || why == reason::gang_member ||
        why == reason::waiting_for_gang)
      continue;
    held[why].push_back(index);
  }
  for (const auto& [why, pods] : held) {
    const WorldPod& first = world.pods[pods.front()];
    const bool passes = why == reason::waiting_for_completion && !first.decision.is_awaited;
    findings.add({.id = "HeldByPolicy",
                  .severity = passes ? Severity::risk : Severity::blocks,
                  .object = why,
                  .text = fmt::format("{}: {}", count_of_pods(pods.size()), first.decision.message),
                  .way_out = why == reason::do_not_disrupt
                                 ? "remove the annotation when the pods may be moved"
                                 : "let the pods finish, or change the option of the drain that holds them"},
                 pods);
  }
}

void find_hanging(const World& world, const Group& group, Findings& findings) {
  for (const std::size_t index : group.pods) {
    const k8s::Pod& pod = world.pods[index].pod;
    const auto margin = std::chrono::duration_cast<std::chrono::microseconds>(drain::Pipeline::place_margin);
    if (!pod.terminating() || pod.finalizers.empty() || world.now <= *pod.deletion_timestamp + margin) continue;
    Finding finding{
        .id = "FinalizerHangs", .severity = Severity::blocks, .object = OwnerName{pod.ns, "Pod", pod.name}.text()};
    finding.text = fmt::format("pod {} was deleted long ago and stays because of its finalizers: {}", pod.key(),
                               fmt::join(pod.finalizers, ", "));
    finding.way_out = "find out why the controllers that set them do not remove them";
    findings.add(std::move(finding), {index});
  }
}

}  // namespace

void find_pod_traits(const World& world, Findings& findings) {
  for (const Group& group : world.groups) {
    find_empty_dirs(world, group, findings);
    find_unmanaged(world, group, findings);
    find_long_grace(world, group, findings);
    find_held(world, group, findings);
    find_hanging(world, group, findings);
  }
}

}  // namespace haulout::audit
