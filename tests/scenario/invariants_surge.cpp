// The invariants about surge: the drain takes the label pod-template-hash off a pod, so that its ReplicaSet creates a
// replacement, and evicts the pod when enough other pods of the Deployment are Ready. Judged from the store and the
// requests alone, without the drain's code.
#include <fmt/format.h>

#include <algorithm>

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

Json mark_of(const Json& pod) {
  return Json::parse(sim::annotation(pod, mark_key), nullptr, false);
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
  patched_.insert(found->second.key);
  Instance& pod = found->second;
  const auto took = static_cast<std::size_t>(std::chrono::duration_cast<std::chrono::seconds>(since_start()).count());
  if (++pod.patches == 9 + failures_ + took / 60) violated(fmt::format("P10: {} patches of {}", pod.patches, pod.key));
  if (given_.options.guards.surge == drain::Surge::off && releases)
    violated("surge: released without --surge: " + pod.key);
}

bool Invariants::is_pod_patch(const sim::Call& call) {
  return call.verb == "patch" && is_about_a_pod(call);
}

bool Invariants::may_read_pod(const sim::Call& call) const {
  return patched_.contains(call.ns + "/" + call.name);
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

Invariants::Rollout* Invariants::rollout_of(const Instance& pod) {
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

// Counts the Ready pods of the Deployment of `pod`, except `pod` itself. With `lately`, pods that were lost or became
// Ready a moment ago count as well: as Ready if `lately` is true, otherwise as not Ready.
std::int64_t Invariants::others_ready(const Instance& pod, bool lately) const {
  const auto ours = deployment_of_.find(pod.controller);
  if (ours == deployment_of_.end()) return 0;
  const TimePoint now = clock_.now();
  const auto is_new = [now](const std::optional<TimePoint>& time) { return time && now - *time <= news_takes; };
  return std::count_if(pods_.begin(), pods_.end(), [&](const auto& entry) {
    const Instance& other = entry.second;
    const auto theirs = deployment_of_.find(other.controller);
    if (&other == &pod || theirs == deployment_of_.end() || theirs->second != ours->second) return false;
    const bool serves = !other.gone && !other.terminating && other.ready_since;
    if (!lately) return serves && !is_new(other.ready_since);
    const bool lost = is_new(other.gone) || is_new(other.terminating) || is_new(other.unready_since);
    return serves || (lost && other.was_ready);
  });
}

// Returns what the pod or else its namespace wants: "true", "false" or nothing. The drain reads a namespace once, so
// its annotation counts only if it has not changed.
std::optional<std::string> Invariants::wish_of(const Json& pod) const {
  if (const std::string own = sim::annotation(pod, wish_key); !own.empty()) return own;
  const auto first = namespaces_at_first_.find(sim::ns_of(pod));
  const std::string now = sim::annotation(cluster_.get("namespaces", "", sim::ns_of(pod)), wish_key);
  const std::string before = first == namespaces_at_first_.end() ? "" : first->second;
  if (now != before) return std::nullopt;
  return now;
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
  if (pod.controller.empty()) pod.controller = sim::text(mark, "/ownerUid");
  const bool released = mark.is_object() && !sim::label(object, hash_label);
  if (change.restored) pod.surged.reset();
  if (!released || change.type == sim::ChangeType::deleted || pod.surged) {
    if (!released) pod.surged.reset();
    return;
  }
  pod.surged = sim::number(mark, "/ready");
  if (change.restored || !change.before || !sim::label(*change.before, hash_label)) return;
  const bool was_ready_for_long = pod.ready_since && clock_.now() - *pod.ready_since > news_takes;
  pod.surged = others_ready(pod, false) + (was_ready_for_long ? 1 : 0);
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
  const auto under_way = std::count_if(pods_.begin(), pods_.end(), [&](const auto& entry) {
    const Instance& other = entry.second;
    const auto one = deployment_of_.find(other.controller), ours = deployment_of_.find(pod.controller);
    return other.surged && !other.gone && !other.terminating && one != deployment_of_.end() &&
           one->second == ours->second;
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

// Called when the server has accepted an eviction or deletion that began the termination of the pod.
void Invariants::check_replaced(Instance& pod) {
  const TimePoint now = clock_.now();
  const bool began_now = pod.terminating == now || pod.gone == now;
  const Rollout* rollout = rollout_of(pod);
  if (!began_now || !rollout || rollout->gone_since || !pod.was_ready || !pod.ready_since) return;
  if (given_.options.guards.surge == drain::Surge::off || !given_.sound_wire || given_.etcd_restored) return;
  const auto [least, most] = replicas_known(*rollout);
  if (pod.surged) {
    const std::int64_t needed = std::min(*pod.surged, least), others = others_ready(pod, true);
    if (others < needed)
      violated(fmt::format("surge: {} was evicted with {} other Ready pods, and needs {}", pod.key, others, needed));
    return;
  }
  if (now - *pod.ready_since < 5s || !pod.last_state || !sim::label(*pod.last_state, hash_label)) return;
  const auto wish = wish_of(*pod.last_state);
  if (!wish || *wish == "false" || !exclusion(*pod.last_state, rollout).empty()) return;
  const bool covered = *wish == "true" || given_.options.guards.surge == drain::Surge::all ||
                       (given_.options.guards.surge == drain::Surge::single_replica && most == 1 && least == 1);
  if (covered) violated("surge: evicted without a replacement: " + pod.key);
}

// At the end, no pod of the node has the mark, unless it terminates, or nothing could be done about it.
void Invariants::check_marks(const drain::Report& report) {
  const bool helpless = (!given_.sound_wire && clock_.now() < began_ + given_.healed_after) || given_.rights_change ||
                        given_.hopeless_answers || given_.etcd_restored || given_.node_goes || given_.as_kubelet ||
                        report.outcome == drain::Outcome::cancelled;
  // A drain that has not begun leaves everything as it was.
  if (helpless || !cordon_claimed_) return;
  for (const auto& object : cluster_.store().list("pods"))
    if (sim::text(*object, "/spec/nodeName") == given_.node && !sim::terminating(*object) &&
        !sim::annotation(*object, mark_key).empty())
      violated(fmt::format("surge: {}, but its mark was left on {}/{}", drain::to_string(report.outcome),
                           sim::ns_of(*object), sim::name_of(*object)));
}

}  // namespace haulout::scenario
