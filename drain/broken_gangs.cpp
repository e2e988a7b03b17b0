#include "drain/broken_gangs.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "drain/gangs.hpp"
#include "drain/reasons.hpp"

namespace haulout::drain {

namespace {

// A message names at most this many pods.
constexpr std::size_t most_named = 3;

std::string named(const std::vector<const TrackedPod*>& members) {
  std::string names;
  for (std::size_t i = 0; i < std::min(members.size(), most_named); ++i)
    names += (i == 0 ? "" : ", ") + members[i]->pod.key();
  if (members.size() > most_named) names += fmt::format(" and {} more", members.size() - most_named);
  return (members.size() == 1 ? "pod " : "pods ") + names;
}

// Returns how the gang of the members can be spared.
std::string way_out(const std::vector<const TrackedPod*>& members, const Policy& policy) {
  if (!policy.waits_for_work) return "the machine goes down, so they end in any case";
  for (const TrackedPod* member : members)
    if (const auto handling = handling_of(member->pod, policy.rules, policy.cluster_api_labels))
      return fmt::format("to spare it, change the {} of pod {}", handling->source, member->pod.key());
  return "to spare it, have the drain wait until its pods have finished (--gangs=wait), or not drain the node "
         "(--gangs=refuse)";
}

std::string message_about(const std::vector<const TrackedPod*>& members, const Policy& policy) {
  const bool one = members.size() == 1;
  const auto size = size_of_gang(members.front()->pod);
  const bool all = size && *size <= members.size();
  const std::string part = all    ? fmt::format("{} all its pods", one ? "is" : "are")
                           : size ? fmt::format("{} of its {} pods", one ? "is one" : "are some", *size)
                           : one  ? "is a member"
                                  : "are members";
  return fmt::format("{} {}; {} eviction stops {}; {}", named(members), part, one ? "its" : "their",
                     all ? "this group, and nothing on other nodes" : "the whole group, also on other nodes",
                     way_out(members, policy));
}

}  // namespace

bool is_in_broken_gang(const k8s::Pod& pod, const std::map<std::string, TrackedPod>& pods) {
  const auto gang = named_gang(pod);
  const auto found = pods.find(pod.uid);
  if (!gang || found == pods.end()) return false;
  return std::ranges::any_of(pods, [&](const auto& entry) {
    const TrackedPod& other = entry.second;
    if (!other.cut_off || other.pod.uid == pod.uid || named_gang(other.pod) != gang) return false;
    return other.terminating_since > std::max(other.known_since, found->second.known_since);
  });
}

void diagnose_gangs(const std::vector<TrackedPod*>& leaving, const std::map<std::string, TrackedPod>& pods,
                    const Policy& policy, std::vector<DiagnosisFact>& facts) {
  std::map<Gang, std::vector<const TrackedPod*>> gangs;
  for (const TrackedPod* tracked : leaving)
    if (const auto gang = gang_of(tracked->pod); gang && tracked->decision.verdict == Verdict::evict &&
                                                 tracked->state != PodState::terminating &&
                                                 !is_in_broken_gang(tracked->pod, pods))
      gangs[*gang].push_back(tracked);
  for (const auto& [gang, members] : gangs) {
    Scope scope = about(members);
    scope.holds = false;
    facts.push_back({reason::gang_broken, gang.text(), message_about(members, policy), {}, std::move(scope)});
  }
}

}  // namespace haulout::drain
