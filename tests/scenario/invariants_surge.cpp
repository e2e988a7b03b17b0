// The invariants about surge: the drain takes the label pod-template-hash off a pod, so that its ReplicaSet creates a
// replacement, and evicts the pod when enough other pods of the Deployment are Ready. Judged from the store and the
// requests alone, without the drain's code.
#include <fmt/format.h>

#include <algorithm>

#include "sim/store.hpp"
#include "tests/scenario/invariants.hpp"

namespace haulout::scenario {
namespace {

using namespace std::chrono_literals;
using sim::Json;

constexpr const char* hash_label = "pod-template-hash";
constexpr const char* mark_key = "haulout.dev/surged";
constexpr const char* wish_key = "haulout.dev/surge";
// The drain reads Deployments again this often at least.
constexpr Duration replicas_known_within = 45s;

// Returns the mark of the pod; null if it has none that fits the pod. Anybody may write a mark, so one that names
// another node, or another ReplicaSet than the owner of the pod, counts for nothing.
Json mark_of(const Json& pod) {
  Json mark = Json::parse(sim::annotation(pod, mark_key), nullptr, false);
  const std::string owner = sim::text(sim::controller_of(pod), "/uid");
  const bool fits = mark.is_object() && sim::text(mark, "/node") == sim::text(pod, "/spec/nodeName") &&
                    !sim::text(mark, "/hash").empty() && !sim::text(mark, "/owner").empty() &&
                    !sim::text(mark, "/ownerUid").empty() && (owner.empty() || owner == sim::text(mark, "/ownerUid"));
  return fits ? mark : Json();
}

std::int64_t resolved(const Json& share, std::int64_t replicas) {
  if (share.is_number()) return share.get<std::int64_t>();
  const std::string text = share.is_string() ? share.get<std::string>() : "25%";
  return (replicas * std::stoll(text) + 99) / 100;
}

bool is_about_a_pod(const sim::Call& call) {
  return call.info && call.info->resource == "pods" && call.subresource.empty();
}

// Returns what is wrong with a patch of a pod; empty if it names the instance and its version, and changes nothing but
// the label and the mark. One patch takes the label off and sets the mark. To give a pod back, one restores the label,
// and one removes the mark later.
std::string fault_of_patch(const sim::Call& call, bool& releases) {
  if (!call.header("Content-Type").starts_with("application/merge-patch+json")) return "is no merge patch";
  const Json body = Json::parse(call.request.body, nullptr, false);
  if (!body.is_object() || body.size() != 1 || !body.contains("metadata")) return "changes more than the metadata";
  Json metadata = body["metadata"];
  for (const char* field : {"uid", "resourceVersion"})
    if (sim::text(metadata, fmt::format("/{}", field).c_str()).empty() || metadata.erase(field) == 0)
      return fmt::format("has no {}", field);
  const Json none, label_off = {{hash_label, nullptr}}, mark_off = {{mark_key, nullptr}};
  const Json labels = metadata.value("labels", none), annotations = metadata.value("annotations", none);
  metadata.erase("labels");
  metadata.erase("annotations");
  const auto sets_only = [](const Json& map, const char* key) {
    return map.is_object() && map.size() == 1 && map.contains(key) && map[key].is_string();
  };
  releases = labels == label_off && sets_only(annotations, mark_key);
  const bool relabels = sets_only(labels, hash_label) && annotations.is_null();
  const bool unmarks = labels.is_null() && annotations == mark_off;
  if (!metadata.empty() || !(releases || relabels || unmarks)) return "changes something else: " + call.request.body;
  return {};
}

}  // namespace

void Invariants::check_pod_patch(const sim::Call& call) {
  bool releases = false;
  if (const std::string fault = fault_of_patch(call, releases); !fault.empty())
    return violated(fmt::format("surge: the patch of {}/{} {}", call.ns, call.name, fault));
  const Json body = Json::parse(call.request.body, nullptr, false);
  const auto found = pods_.find(sim::text(body, "/metadata/uid"));
  if (found == pods_.end() || found->second.key != call.ns + "/" + call.name || !on_our_node(found->second))
    return violated(fmt::format("surge: the patch of {}/{} names no pod of our node", call.ns, call.name));
  patched_.insert(found->first);
  Instance& pod = found->second;
  const auto took = static_cast<std::size_t>(std::chrono::duration_cast<std::chrono::seconds>(since_start()).count());
  if (++pod.patches == 9 + failures_ + took / 60) violated(fmt::format("P10: {} patches of {}", pod.patches, pod.key));
  if (given_.options.guards.surge == drain::Surge::off && releases)
    violated("surge: released without --surge: " + pod.key);
  const Json stored = cluster_.get("pods", call.ns, call.name);
  // With another version the server refuses the patch, whatever it says.
  const bool takes_effect =
      sim::text(stored, "/metadata/resourceVersion") == sim::text(body, "/metadata/resourceVersion") &&
      sim::uid_of(stored) == found->first;
  if (takes_effect && !releases && !given_.etcd_restored) check_give_back(pod, stored, body);
}

// Checks a patch that restores the label or removes the mark. At each moment the pod has a controller or a mark, so the
// mark goes only when the ReplicaSet has adopted the pod, or when there is none that could.
void Invariants::check_give_back(const Instance& pod, const Json& stored, const Json& patch) {
  const std::string value = sim::text(patch, "/metadata/labels/pod-template-hash");
  const bool owned = !sim::controller_of(stored).is_null();
  if (value.empty()) {
    if (!sim::label(stored, hash_label) || (!owned && has_replica_set(pod)))
      violated("surge: the mark is removed before the ReplicaSet has adopted the pod: " + pod.key);
    return;
  }
  if (value != pod.hash) violated(fmt::format("surge: {} gets the label {}, but had {}", pod.key, value, pod.hash));
  // Judged only if the drain ends as drained: before another end, it gives back whatever it has surged.
  const Rollout* rollout = rollout_of(pod);
  if (given_.options.guards.surge == drain::Surge::off || !rollout || rollout->gone_since || !given_.sound_wire ||
      given_.human_uncordon || !pod.surged || !pod.ready_since || !pod.surged_since)
    return;
  // Which pods were Ready in the moment before is not known.
  if (began_ - loaded_ <= news_takes) return;
  // If its eviction is refused for long after that, the drain may give up.
  if (clock_.now() - *pod.surged_since > 50min) return;
  // Pods that have recovered since the release are needed, too. One that came at the time of the release may be a
  // replacement or not.
  const std::int64_t before = std::max({*pod.surged, pod.most_ready_before, ready_before_surges(pod, 2s)});
  const std::int64_t needed = std::min(before, replicas_known(*rollout).second);
  if (const std::int64_t others = others_ready(pod, false); others >= needed)
    vain_give_backs_.push_back(
        fmt::format("surge: {} was given back, but {} others were Ready, and it needed {}", pod.key, others, needed));
}

bool Invariants::is_pod_patch(const sim::Call& call) {
  return call.verb == "patch" && is_about_a_pod(call);
}

void Invariants::see_rollout(const sim::Change& change) {
  const Json& object = *change.object;
  if (change.key.resource == "replicasets") {
    const Json& above = sim::controller_of(object);
    if (sim::text(above, "/kind") == "Deployment") deployment_of_[sim::uid_of(object)] = sim::text(above, "/uid");
    return;
  }
  Rollout& rollout = rollouts_[sim::uid_of(object)];
  rollout.gone = change.type == sim::ChangeType::deleted;
  if (rollout.gone && !rollout.gone_since) rollout.gone_since = clock_.now();
  rollout.spec = sim::at(object, "/spec");
  const std::int64_t replicas = sim::number(object, "/spec/replicas", 1);
  if (rollout.replicas.empty() || rollout.replicas.back().second != replicas)
    rollout.replicas.emplace_back(clock_.now(), replicas);
}

const Invariants::Rollout* Invariants::rollout_of(const Instance& pod) const {
  const auto above = deployment_of_.find(pod.controller);
  if (above == deployment_of_.end()) return nullptr;
  const auto found = rollouts_.find(above->second);
  return found == rollouts_.end() ? nullptr : &found->second;
}

// Returns the smallest and the largest number of replicas that the drain may know.
std::pair<std::int64_t, std::int64_t> Invariants::replicas_known(const Rollout& rollout) const {
  std::int64_t least = INT64_MAX, most = 0;
  for (auto entry = rollout.replicas.rbegin(); entry != rollout.replicas.rend(); ++entry) {
    least = std::min(least, entry->second);
    most = std::max(most, entry->second);
    if (clock_.now() - entry->first > replicas_known_within) break;
  }
  return {least, most};
}

bool Invariants::is_of_same_deployment(const Instance& one, const Instance& other) const {
  const auto ones = deployment_of_.find(one.controller), others = deployment_of_.find(other.controller);
  return ones != deployment_of_.end() && others != deployment_of_.end() && ones->second == others->second;
}

// The drain of another node may evict such a pod at any time, so it does not count as Ready.
bool Invariants::is_surged_elsewhere(const Instance& pod) const {
  return pod.surged && !on_our_node(pod);
}

// Counts the Ready pods of the Deployment of `pod`, except `pod` itself. With `lately`, pods that were lost or became
// Ready a moment ago count as well: as Ready if `lately` is true, otherwise as not Ready. The drain always knows what
// it has evicted itself.
std::int64_t Invariants::others_ready(const Instance& pod, bool lately) const {
  const TimePoint now = clock_.now();
  const auto is_new = [now](const std::optional<TimePoint>& time) { return time && now - *time <= news_takes; };
  return std::count_if(pods_.begin(), pods_.end(), [&](const auto& entry) {
    const Instance& other = entry.second;
    if (&other == &pod || !is_of_same_deployment(pod, other) || is_surged_elsewhere(other)) return false;
    const bool serves = !other.gone && !other.terminating && other.ready_since;
    if (!lately) return serves && !is_new(other.ready_since);
    const bool lost = is_new(other.gone) || is_new(other.terminating) || is_new(other.unready_since);
    // The server may handle an eviction that the drain has sent after that of `pod` before it.
    const bool evicted_before = other.evicted_by_us && other.last_sent_as < pod.last_sent_as;
    return serves || (lost && other.was_ready && !evicted_before);
  });
}

// Counts the Ready pods of the Deployment, `pod` included, without those that are there because of a surge: while one
// of its pods on the node is surged, pods that came more than `slack` after that release. A pod that became Ready a
// moment ago does not count, so if one flaps at the time of a release, the result is one too small, and the checks see
// less. With a negative `slack`, pods that were given back a moment ago count as surged.
std::int64_t Invariants::ready_before_surges(const Instance& pod, Duration slack) const {
  const TimePoint now = clock_.now();
  const auto surged_since = [&](const Instance& other) -> std::optional<TimePoint> {
    const auto& before = other.surged_until;
    if (slack < Duration::zero() && before && now - before->second <= news_takes) return before->first;
    return other.surged_since;
  };
  TimePoint earliest = TimePoint::max();
  for (const auto& [uid, other] : pods_)
    if (const auto since = surged_since(other);
        since && !other.gone && !other.terminating && on_our_node(other) && is_of_same_deployment(pod, other))
      earliest = std::min(earliest, *since);
  // Marks and creation times have whole seconds.
  const auto came_later = [&](const Instance& other) {
    return earliest != TimePoint::max() && other.first_seen > loaded_ && other.first_seen > earliest + slack;
  };
  return std::count_if(pods_.begin(), pods_.end(), [&](const auto& entry) {
    const Instance& other = entry.second;
    const bool serves = !other.gone && !other.terminating && other.ready_since && now - *other.ready_since > news_takes;
    return serves && (&other == &pod || other.in_flight == 0 || slack > Duration::zero()) &&
           (&other == &pod ||
            (is_of_same_deployment(pod, other) && !came_later(other) && !(surged_since(other) && !on_our_node(other))));
  });
}

// Called before the number of Ready pods of `pod`'s Deployment changes.
void Invariants::note_ready_before(const Instance& pod) {
  for (auto& [uid, other] : pods_)
    if (other.surged && is_of_same_deployment(pod, other))
      other.most_ready_before = std::max(other.most_ready_before, ready_before_surges(other, 2s));
}

void Invariants::told_of_namespace(const std::string& name, const Json& object) {
  namespaces_told_[name].emplace_back(clock_.now(), sim::annotation(object, wish_key));
}

// Returns what the pod or else its namespace wants, as the drain was told: "true", "false", or nothing. Returns nullopt
// if the drain has not read the namespace, or if the last two answers differ and the last one is new.
std::optional<std::string> Invariants::wish_of(const Json& pod) const {
  if (std::string own = sim::annotation(pod, wish_key); own == "true" || own == "false") return own;
  const auto told = namespaces_told_.find(sim::ns_of(pod));
  if (told == namespaces_told_.end()) return std::nullopt;
  const auto& answers = told->second;
  const bool differs = answers.size() > 1 && answers.back().second != answers[answers.size() - 2].second;
  if (differs && clock_.now() - answers.back().first <= news_takes) return std::nullopt;
  return answers.back().second;
}

// Returns why the pod must never be surged; empty if it may be.
std::string Invariants::exclusion(const Json& pod, const Rollout* rollout) const {
  if (!rollout) return "no Deployment is above it";
  if (wish_of(pod) == "false") return "an annotation forbids it";
  const Json& spec = rollout->spec;
  if (sim::text(spec, "/strategy/type") == "Recreate") return "the strategy is Recreate";
  const Json& most = sim::at(spec, "/strategy/rollingUpdate/maxSurge");
  if (most == 0 || most == "0%") return "maxSurge is 0";
  if (sim::text(spec, "/podReplacementPolicy") == "TerminationComplete") return "podReplacementPolicy";
  for (const Json& container : sim::at(pod, "/spec/containers"))
    for (const Json& port : sim::at(container, "/ports"))
      if (sim::number(port, "/hostPort") != 0) return "a host port";
  for (const std::string& claim : sim::claims_of(pod)) {
    const Json modes = sim::at(cluster_.get("persistentvolumeclaims", sim::ns_of(pod), claim), "/spec/accessModes");
    const auto shared = [](const Json& mode) { return mode == "ReadWriteMany" || mode == "ReadOnlyMany"; };
    if (std::none_of(modes.begin(), modes.end(), shared)) return "a claim that only one node may mount";
  }
  return {};
}

// Called with every change of a pod, on any node.
void Invariants::see_surge(Instance& pod, const sim::Change& change) {
  const Json& object = *change.object;
  if (pod.ready_since) pod.was_ready = true;
  const Json mark = mark_of(object);
  const auto label = sim::label(object, hash_label);
  if (pod.controller.empty()) pod.controller = sim::text(mark, "/ownerUid");
  // The ReplicaSet may have been deleted before.
  if (const std::string above = sim::text(mark, "/deploymentUid"); !above.empty())
    deployment_of_.try_emplace(pod.controller, above);
  if (pod.hash.empty()) pod.hash = label.value_or(sim::text(mark, "/hash"));
  const bool loses_label = change.before && sim::label(*change.before, hash_label) && !label;
  if (loses_label && !change.restored) pod.released = true;
  const bool released = mark.is_object() && !label;
  note_ready_before(pod);
  if (pod.surged && !released) pod.surged_until = {*pod.surged_since, clock_.now()};
  if (change.restored || !released) {
    pod.surged.reset();
    pod.most_ready_before = 0;
    pod.surged_since.reset();
  }
  if (!released || change.type == sim::ChangeType::deleted || pod.surged) return;
  pod.surged = sim::number(mark, "/ready");
  pod.surged_since = clock_.now();
  if (change.restored || !loses_label) return;
  pod.surged = ready_before_surges(pod, -2s);
  note(fmt::format("pod {} is surged: {} are Ready", pod.key, *pod.surged));
  check_release(pod, *change.before, mark);
}

void Invariants::check_release(const Instance& pod, const Json& before, const Json& mark) {
  const Json& owner = sim::controller_of(before);
  const bool true_mark = sim::text(mark, "/node") == given_.node && sim::number(mark, "/ready") >= 1 &&
                         sim::text(mark, "/hash") == sim::label(before, hash_label) &&
                         sim::text(mark, "/owner") == sim::text(owner, "/name") &&
                         sim::text(mark, "/ownerUid") == sim::text(owner, "/uid") && !sim::text(mark, "/run").empty() &&
                         !sim::text(mark, "/at").empty();
  if (!true_mark) violated(fmt::format("surge: the mark of {} does not tell the truth: {}", pod.key, mark.dump()));
  const Rollout* rollout = rollout_of(pod);
  if (const std::string why = exclusion(before, rollout); !why.empty())
    violated(fmt::format("surge: {} was released, but {}", pod.key, why));
  const bool read = namespaces_told_.contains(sim::ns_of(before));
  if (const std::string own = sim::annotation(before, wish_key); own != "true" && own != "false" && !read)
    violated(fmt::format("surge: {} was released before its namespace was read", pod.key));
  if (!rollout || given_.etcd_restored || !given_.sound_wire) return;
  if (sim::number(mark, "/ready") < *pod.surged)
    violated(fmt::format("surge: the mark of {} tells of {} Ready pods, but there were {}", pod.key,
                         sim::number(mark, "/ready"), *pod.surged));
  const auto [least, most] = replicas_known(*rollout);
  const auto wish = wish_of(before);
  if (given_.options.guards.surge == drain::Surge::single_replica && wish && *wish != "true" && least > 1)
    violated(fmt::format("surge: {} was released, but there are {} replicas", pod.key, least));
  if (given_.options.guards.surge == drain::Surge::closed_budget && wish && *wish != "true" && !may_be_closed(pod))
    violated(fmt::format("surge: {} was released, but its budget is open", pod.key));
  const auto places =
      std::max<std::int64_t>(1, resolved(sim::at(rollout->spec, "/strategy/rollingUpdate/maxSurge"), most));
  // Pods that the drain of another node has surged take no place of this drain.
  const auto under_way = std::count_if(pods_.begin(), pods_.end(), [&](const auto& entry) {
    const Instance& other = entry.second;
    return other.surged && on_our_node(other) && !other.gone && !other.terminating && is_of_same_deployment(pod, other);
  });
  if (under_way > places)
    violated(
        fmt::format("surge: {} pods are surged at the same time, with {}, and {} may be", under_way, pod.key, places));
}

bool Invariants::may_be_closed(const Instance& pod) const {
  const auto all = budgets();
  return std::any_of(all.begin(), all.end(), [&](const auto& budget) {
    const auto closed = closed_.find(budget.uid);
    return budget.selects(pod.pod) && closed != closed_.end() &&
           clock_.now() < saturating_add(closed->second, news_takes);
  });
}

// Returns true if a budget selects the pod and pods of other controllers, and counts a pod without an owner as healthy,
// but not as expected. The only pod of a Deployment must not be released under such a budget.
bool Invariants::has_shared_budget(const Instance& pod) const {
  const auto all = budgets();
  return std::any_of(all.begin(), all.end(), [&](const k8s::PodDisruptionBudget& budget) {
    const bool by_scale = !budget.max_unavailable.empty() || budget.min_available.ends_with('%');
    if (!by_scale || !budget.selects(pod.pod)) return false;
    const auto pods = cluster_.store().list("pods", budget.ns);
    return std::any_of(pods.begin(), pods.end(), [&](const sim::Object& other) {
      const auto decoded = k8s::decode<k8s::Pod>(other->dump());
      const Json& owner = sim::controller_of(*other);
      return decoded && budget.selects(*decoded) && sim::text(owner, "/uid") != pod.controller;
    });
  });
}

// Called when the server has accepted an eviction or deletion that began the termination of the pod.
void Invariants::check_replaced(Instance& pod) {
  const TimePoint now = clock_.now();
  const bool began_now = pod.terminating ? *pod.terminating == now : pod.gone == now;
  if (!began_now || !pod.was_ready || !pod.ready_since) return;
  if (!given_.sound_wire || given_.etcd_restored) return;
  if (given_.sound_budgets && !given_.options.delete_instead_of_evict)
    for (const auto& budget : cluster_.store().list("poddisruptionbudgets", pod.key.substr(0, pod.key.find('/'))))
      check_budget_of_all(pod, *budget);
  const Rollout* rollout = rollout_of(pod);
  if (!rollout || rollout->gone_since || given_.options.guards.surge == drain::Surge::off) return;
  const auto [least, most] = replicas_known(*rollout);
  // The owner of a pod may have it evicted without a replacement at any time.
  if (pod.last_state && sim::annotation(*pod.last_state, wish_key) == "false") return;
  // A pod that was given back may go without a new release when enough others are Ready.
  const Json mark = pod.last_state ? mark_of(*pod.last_state) : Json();
  if (!pod.surged && mark.is_object() && others_ready(pod, true) >= std::min(sim::number(mark, "/ready"), least))
    return;
  if (pod.surged) {
    const std::int64_t needed = std::min(*pod.surged, least), others = others_ready(pod, true);
    if (others < needed)
      violated(fmt::format("surge: {} was evicted with {} other Ready pods, and needs {}", pod.key, others, needed));
    return;
  }
  if (now - *pod.ready_since < 5s || !pod.last_state || !sim::label(*pod.last_state, hash_label)) return;
  auto wish = wish_of(*pod.last_state);
  const std::string ns = sim::ns_of(*pod.last_state);
  // The drain has not asked, so the namespace decides as it is.
  if (!wish && !namespaces_told_.contains(ns)) wish = sim::annotation(cluster_.get("namespaces", "", ns), wish_key);
  if (!wish || *wish == "false" || !exclusion(*pod.last_state, rollout).empty()) return;
  const bool covered = *wish == "true" || given_.options.guards.surge == drain::Surge::all ||
                       (given_.options.guards.surge == drain::Surge::single_replica && most == 1 && least == 1);
  if (covered && !(least <= 1 && has_shared_budget(pod))) violated("surge: evicted without a replacement: " + pod.key);
}

bool Invariants::is_owned(const Instance& pod) const {
  const std::string ns = pod.key.substr(0, pod.key.find('/')), name = pod.key.substr(ns.size() + 1);
  const auto stored = cluster_.store().get({"pods", ns, name});
  return stored && !sim::controller_of(*stored).is_null();
}

// Returns the smallest number of replicas that the workload above the pod may have had lately, and its UID. Returns
// nullopt if the workload has no scale. A pod that nobody owns counts as one of its workload only if this drain has
// released it.
std::optional<std::int64_t> Invariants::scale_of(const Instance& pod, std::string& whose) {
  const std::string ns = pod.key.substr(0, pod.key.find('/'));
  whose.clear();
  if (!is_owned(pod) && !(pod.released && pod.surged)) return 0;
  if (const Rollout* rollout = rollout_of(pod); rollout && !rollout->gone_since) {
    whose = deployment_of_[pod.controller];
    return replicas_known(*rollout).first;
  }
  for (const char* resource : {"replicasets", "statefulsets"})
    for (const auto& set : cluster_.store().list(resource, ns)) {
      if (sim::uid_of(*set) != pod.controller) continue;
      whose = pod.controller;
      return sim::number(*set, "/spec/replicas", 1);
    }
  return std::nullopt;
}

// After an eviction, as many pods of the budget are Ready as it demands for all workloads whose pods it selects. While
// a surged pod has no replacement, the disruption controller does not count its Deployment, so it allows more. Judged
// only for budgets of pods that the drain has changed.
void Invariants::check_budget_of_all(const Instance& evicted, const Json& budget) {
  if (!sim::annotation(budget, "sim.haulout.dev/expects-pods").empty()) return;
  const sim::Selector selector = sim::Selector::from_object(sim::at(budget, "/spec/selector"));
  const auto selects = [&](const Instance& pod) {
    return pod.key.starts_with(sim::ns_of(budget) + "/") && selector.matches_labels(pod.labels);
  };
  const bool concerns_us = std::any_of(patched_.begin(), patched_.end(),
                                       [&](const std::string& uid) { return !pods_[uid].gone && selects(pods_[uid]); });
  if (!concerns_us || !selects(evicted)) return;
  const TimePoint now = clock_.now();
  const auto is_new = [now](const std::optional<TimePoint>& time) { return time && now - *time <= news_takes; };
  std::map<std::string, std::int64_t> scales;
  std::set<std::string> owning, lately;  // workloads that have a pod with an owner, and those that have just lost a pod
  std::int64_t ready = 0;
  for (const auto& [uid, pod] : pods_) {
    if (!selects(pod)) continue;
    const std::string top = rollout_of(pod) ? deployment_of_[pod.controller] : pod.controller;
    if (is_new(pod.gone) || is_new(pod.terminating)) lately.insert(top);
    if (is_owned(pod) && !pod.terminating) owning.insert(top);
    const bool serves = !pod.gone && !pod.terminating && pod.ready_since;
    const bool lost = is_new(pod.gone) || is_new(pod.terminating) || is_new(pod.unready_since);
    if (serves || (lost && pod.was_ready && !pod.evicted_by_us)) ++ready;
    if (pod.gone) continue;
    std::string whose;
    const auto scale = scale_of(pod, whose);
    if (!scale) return;
    const bool had_none = now - pod.first_seen <= news_takes;
    if (!whose.empty() && !had_none) scales[whose] = *scale;
  }
  std::int64_t all = 0;
  for (const auto& [whose, scale] : scales) {
    if (!owning.contains(whose) && lately.contains(whose)) return;  // the drain cannot know that yet
    all += scale;
  }
  const Json& most_missing = sim::at(budget, "/spec/maxUnavailable");
  const std::int64_t demanded = most_missing.is_null() ? resolved(sim::at(budget, "/spec/minAvailable"), all)
                                                       : std::max<std::int64_t>(0, all - resolved(most_missing, all));
  if (ready < demanded)
    violated(fmt::format("surge: {} was evicted, and {} pods of budget {} are Ready, which demands {} of {}",
                         evicted.key, ready, sim::name_of(budget), demanded, all));
}

bool Invariants::is_helpless() const {
  return (!given_.sound_wire && clock_.now() < began_ + given_.healed_after) || given_.rights_change ||
         given_.hopeless_answers || given_.etcd_restored || given_.node_goes || given_.as_kubelet;
}

// Returns true if the ReplicaSet of the pod is there and may adopt the pod.
bool Invariants::has_replica_set(const Instance& pod) const {
  const std::string ns = pod.key.substr(0, pod.key.find('/'));
  if (sim::terminating(cluster_.get("namespaces", "", ns))) return false;
  for (const auto& set : cluster_.store().list("replicasets", ns))
    if (sim::uid_of(*set) == pod.controller) return !sim::terminating(*set);
  return false;
}

// At the end, no pod of the node has the mark, and each that the drain has changed has an owner, unless the pod
// terminates, or no ReplicaSet could adopt it, or nothing could be done about it.
void Invariants::check_nothing_surged(const std::string& outcome) {
  if (is_helpless()) return;
  for (const auto& object : cluster_.store().list("pods")) {
    if (sim::text(*object, "/spec/nodeName") != given_.node || sim::terminating(*object)) continue;
    const std::string uid = sim::uid_of(*object);
    const Instance& pod = pods_[uid];
    if (!has_replica_set(pod)) continue;
    if (mark_of(*object).is_object()) violated(fmt::format("surge: {}, but its mark was left on {}", outcome, pod.key));
    if (patched_.contains(uid) && sim::controller_of(*object).is_null())
      violated(fmt::format("surge: {}, but nobody owns {}, which the drain has changed", outcome, pod.key));
  }
}

void Invariants::gave_back() {
  if (!cordon_claimed_) return;
  check_nothing_surged("cancelled and given back");
  check_withdrawn("cancelled and withdrawn");
}

}  // namespace haulout::scenario
