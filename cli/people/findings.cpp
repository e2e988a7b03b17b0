#include "cli/people/findings.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/text.hpp"
#include "cli/people/explanation.hpp"
#include "drain/diagnoses.hpp"
#include "drain/options.hpp"
#include "drain/replicas.hpp"
#include "drain/volumes.hpp"

namespace haulout::cli {
namespace {

using drain::DiagnosisFact;

struct Judged {
  const k8s::Pod* pod;
  drain::Decision decision;
};

bool leaves(const Judged& judged) {
  return judged.decision.verdict != drain::Verdict::skip;
}

std::vector<Judged> judged(const NodeFacts& facts, WallTime now) {
  std::vector<Judged> all;
  all.reserve(facts.pods.size());
  for (const k8s::Pod& pod : facts.pods)
    all.push_back({&pod, drain::decide(pod, drain::Policy(), facts.daemon_sets, now)});
  return all;
}

bool stuck(const k8s::Namespace& ns, WallTime now) {
  return ns.deletion_timestamp &&
         now - *ns.deletion_timestamp > std::chrono::duration_cast<WallTime::duration>(drain::namespace_hold);
}

void find_namespaces(const Asked& asked, const std::vector<Judged>& pods, WallTime now,
                     std::vector<DiagnosisFact>& found) {
  for (const auto& [name, ns] : asked.dying) {
    std::vector<const k8s::Pod*> held;
    for (const Judged& judged : pods)
      if (leaves(judged) && !judged.pod->terminating() && judged.pod->ns == name) held.push_back(judged.pod);
    if (!held.empty() && stuck(ns, now))
      found.push_back(drain::namespace_fact(name, held, joined(ns.conditions, "; ")));
  }
}

void find_local_volumes(const Asked& asked, const std::vector<Judged>& pods, std::vector<DiagnosisFact>& found) {
  for (const Judged& judged : pods)
    if (const auto local = asked.local_volumes.find(judged.pod->uid); local != asked.local_volumes.end())
      found.push_back(drain::local_volume_fact(*judged.pod, local->second));
}

drain::ClaimUse use_of(const std::vector<Judged>& pods) {
  drain::ClaimUse use;
  for (const Judged& judged : pods) {
    auto& claims = leaves(judged) ? use.leaving : judged.pod->finished() ? use.left : use.staying;
    for (const std::string& claim : judged.pod->claims) claims.insert(judged.pod->ns + "/" + claim);
  }
  return use;
}

// Judges the volume as a drain would that has watched it since the deletionTimestamp of its VolumeAttachment, and for
// at least leak_hold. After leak_hold a drain reports a volume without a user as leaked.
void find_volume(const std::string& node, const Asked& asked, const AttachedVolume& volume, const drain::ClaimUse& use,
                 WallTime now, std::vector<DiagnosisFact>& found) {
  Duration watched = drain::VolumeBook::leak_hold;
  if (const auto since = volume.attachment.deletion_timestamp; since && now - *since > watched)
    watched = std::chrono::duration_cast<Duration>(now - *since);
  const TimePoint begin{}, end = begin + watched;
  drain::VolumeBook book(node, drain::Options().volume_limit, [](drain::EventType, const drain::VolumeReport&) {});
  book.attachment_changed(volume.attachment.uid, &volume.attachment, begin, now);
  book.resolved(volume.attachment.persistent_volume, volume.claim);
  book.look(use, begin, now);
  book.node_holds(asked.held, end);
  book.look(use, end, now);
  book.diagnose(end, found);
}

void find_replicas(const NodeFacts& facts, const std::vector<Judged>& pods, std::vector<DiagnosisFact>& found) {
  static const std::vector<std::string> some_budget{"unseen"}, no_budget;
  drain::Guards guards;
  guards.single_replica = drain::SingleReplica::warn;
  drain::ControllerBook book(guards);
  for (const auto& [owner, controller] : facts.asked.controllers) book.learned(owner, controller, TimePoint());
  std::vector<drain::TrackedPod> tracked;
  for (const Judged& judged : pods) {
    if (!leaves(judged)) continue;
    drain::TrackedPod& one = tracked.emplace_back();
    one.pod = *judged.pod;
    one.decision = judged.decision;
    const bool guarded = std::any_of(facts.budgets.begin(), facts.budgets.end(),
                                     [&](const auto& budget) { return budget.selects(*judged.pod); });
    one.budgets = guarded ? &some_budget : &no_budget;
  }
  std::vector<drain::TrackedPod*> leaving;
  leaving.reserve(tracked.size());
  for (drain::TrackedPod& one : tracked) leaving.push_back(&one);
  drain::diagnose_replicas(leaving, book, !facts.budgets_problem, found);
}

}  // namespace

std::string words_of_dying(const k8s::Namespace& ns, WallTime now) {
  return fmt::format(
      "its namespace {} is being deleted, and the pod with it; until then the server evicts no pod of it{}", ns.name,
      stuck(ns, now) ? " [NamespaceStuckTerminating]" : "");
}

std::vector<DiagnosisFact> findings_of(const NodeFacts& facts, WallTime now) {
  const std::vector<Judged> pods = judged(facts, now);
  std::vector<DiagnosisFact> found;
  find_namespaces(facts.asked, pods, now, found);
  find_local_volumes(facts.asked, pods, found);
  const drain::ClaimUse use = use_of(pods);
  for (const AttachedVolume& volume : facts.asked.volumes)
    find_volume(facts.node.name, facts.asked, volume, use, now, found);
  find_replicas(facts, pods, found);
  std::map<std::pair<std::string, std::string>, DiagnosisFact> sorted;
  for (DiagnosisFact& fact : found) {
    const std::pair key(fact.code, fact.subject);
    sorted.try_emplace(key, std::move(fact));
  }
  found.clear();
  for (auto& [key, fact] : sorted) found.push_back(std::move(fact));
  return found;
}

}  // namespace haulout::cli
