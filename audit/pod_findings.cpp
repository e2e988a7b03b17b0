#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>

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

// Returns true if a path belongs to the system of each machine: programs find the same there on every node.
bool is_of_system(std::string_view path) {
  constexpr std::array system = {"/bin",  "/boot", "/dev",  "/etc", "/lib", "/lib64",   "/opt/cni", "/proc",
                                 "/root", "/run",  "/sbin", "/sys", "/usr", "/var/log", "/var/run", "/var/lib/kubelet"};
  const auto lies_in = [&](std::string_view folder) {
    return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
  };
  return path.find_first_not_of('/') == std::string_view::npos || std::ranges::any_of(system, lies_in);
}

// Returns the first directory or file of its machine that may have data of the pod; empty if there is none. Sockets and
// devices have none.
std::string host_path_of(const sim::Json& pod) {
  for (const sim::Json& volume : sim::at(pod, "/spec/volumes")) {
    const std::string path = sim::text(volume, "/hostPath/path"), type = sim::text(volume, "/hostPath/type");
    const bool is_data = type.empty() || type.starts_with("Directory") || type.starts_with("File");
    if (!path.empty() && is_data && !is_of_system(path)) return path;
  }
  return {};
}

// Returns true if the pod names the node on which it has to run, so that its replacement runs there, too.
bool names_its_node(const sim::Json& pod) {
  const auto names = [](const sim::Json& expression) {
    const std::string key = sim::text(expression, "/key");
    return key == "kubernetes.io/hostname" || key == "metadata.name";
  };
  if (sim::at(pod, "/spec/nodeSelector").contains("kubernetes.io/hostname")) return true;
  const sim::Json& terms =
      sim::at(pod, "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
  return std::ranges::any_of(terms, [&](const sim::Json& term) {
    return std::ranges::any_of(sim::at(term, "/matchExpressions"), names) ||
           std::ranges::any_of(sim::at(term, "/matchFields"), names);
  });
}

void find_host_paths(const World& world, const Group& group, Findings& findings) {
  Pods pods;
  std::string path;
  for (const std::size_t index : group.pods) {
    const WorldPod& pod = world.pods[index];
    if (!pod.leaves() || !pod.pod.controller || names_its_node(*pod.object)) continue;
    std::string found = host_path_of(*pod.object);
    if (found.empty()) continue;
    if (path.empty()) path = std::move(found);
    pods.push_back(index);
  }
  findings.add({.id = "HostPath",
                .severity = Severity::risk,
                .text = fmt::format("{} with a directory of the machine, such as {}: a replacement on another node "
                                    "starts without what is in it",
                                    count_of_pods(pods.size()), path),
                .way_out = "keep data that must survive in a PersistentVolumeClaim"},
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
    find_host_paths(world, group, findings);
    find_unmanaged(world, group, findings);
    find_long_grace(world, group, findings);
    find_held(world, group, findings);
    find_hanging(world, group, findings);
  }
}

}  // namespace haulout::audit
