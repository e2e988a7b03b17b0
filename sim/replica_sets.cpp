#include "sim/replica_sets.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "k8s/codec.hpp"
#include "sim/workloads.hpp"

namespace haulout::sim {

bool is_active(const Json& pod) {
  return !terminating(pod) && !pod_finished(pod);
}

namespace {

bool by_name(const Object& one, const Object& other) {
  return name_of(*one) < name_of(*other);
}

// Returns nullopt for a ReplicaSet that neither releases nor adopts.
std::optional<Selector> selector_of(const Json& set) {
  Selector selector = Selector::from_object(at(set, "/spec/selector"));
  if (selector.demands().empty() || !selector.matches_labels(at(set, "/spec/template/metadata/labels")))
    return std::nullopt;
  return selector;
}

void release(World& world, const Json& pod, const std::string& owner_uid) {
  world.store.modify({"pods", ns_of(pod), name_of(pod)}, [&](Json& next) {
    Json& owners = next["metadata"]["ownerReferences"];
    owners.erase(std::remove_if(owners.begin(), owners.end(),
                                [&](const Json& owner) { return text(owner, "/uid") == owner_uid; }),
                 owners.end());
    if (owners.empty()) next["metadata"].erase("ownerReferences");
  });
}

void adopt(World& world, const Json& pod, const Json& set) {
  world.store.modify({"pods", ns_of(pod), name_of(pod)}, [&](Json& next) {
    Json& owners = next["metadata"]["ownerReferences"];
    if (!owners.is_array()) owners = Json::array();
    owners.push_back(owner_reference(set));
  });
}

}  // namespace

Claims::Fate Claims::fate_of(const Known& known, const Object& pod) {
  ++examined_;
  if (!is_active(*pod)) return Fate::does_not_count;
  return !known.selector || known.selector->matches(*pod) ? Fate::counts : Fate::to_release;
}

Claims::Known& Claims::known_of(const Object& set) {
  Known& known = known_[uid_of(*set)];
  if (known.set == set) return known;
  known = {set, selector_of(*set)};
  for (Object& pod : world_.store.list("pods", ns_of(*set), By::controller, uid_of(*set))) {
    const Fate fate = fate_of(known, pod);
    known.pods.push_back({std::move(pod), fate});
  }
  return known;
}

// Returns nullptr if the pod has no controller, or one that has not claimed its pods yet.
Claims::Known* Claims::controller_of(const Object& pod) {
  if (!pod) return nullptr;
  const auto known = known_.find(text(sim::controller_of(*pod), "/uid"));
  // A pod cannot belong to a ReplicaSet of another namespace.
  const bool is_own = known != known_.end() && ns_of(*known->second.set) == ns_of(*pod);
  return is_own ? &known->second : nullptr;
}

void Claims::note(const Change& change) {
  // A restored backup may change many pods, and is rare. So everything is read again.
  if (change.restored) return known_.clear();
  if (Known* const known = controller_of(change.before))
    std::erase_if(known->pods, [&](const Judged& judged) { return judged.pod == change.before; });
  Known* const known = change.type == ChangeType::deleted ? nullptr : controller_of(change.object);
  if (known) known->pods.push_back({change.object, fate_of(*known, change.object)});
}

void Claims::forget(const Key& set) {
  std::erase_if(known_, [&](const auto& entry) {
    const Json& known = *entry.second.set;
    return ns_of(known) == set.ns && name_of(known) == set.name;
  });
}

std::vector<Object> Claims::with(const Known& known, Fate fate) const {
  std::vector<Object> pods;
  for (const Judged& judged : known.pods)
    if (judged.fate == fate) pods.push_back(judged.pod);
  std::sort(pods.begin(), pods.end(), by_name);
  return pods;
}

std::size_t Claims::claim_pods(const Object& set) {
  const Known& known = known_of(set);
  for (const Object& pod : with(known, Fate::to_release)) release(world_, *pod, uid_of(*set));
  if (known.selector)
    for (const Object& pod : world_.store.list("pods", ns_of(*set), By::controller, ""))
      if (is_active(*pod) && known.selector->matches(*pod)) adopt(world_, *pod, *set);
  return static_cast<std::size_t>(std::count_if(known.pods.begin(), known.pods.end(),
                                                [](const Judged& judged) { return judged.fate == Fate::counts; }));
}

std::vector<Object> Claims::active_pods(const Json& set) const {
  const auto known = known_.find(uid_of(set));
  return known == known_.end() ? std::vector<Object>() : with(known->second, Fate::counts);
}

std::vector<Object> sets_that_select(const Store& store, const Json& pod) {
  std::vector<Object> sets;
  for (Object& set : store.list("replicasets", ns_of(pod)))
    if (const auto selector = selector_of(*set); selector && selector->matches(pod)) sets.push_back(std::move(set));
  return sets;
}

std::vector<Object> related_pods(const Store& store, const Json& set) {
  const std::string above = text(controller_of(set), "/uid");
  if (above.empty()) return store.list("pods", ns_of(set), By::controller, uid_of(set));
  std::vector<Object> related;
  for (const Object& sibling : store.list("replicasets", ns_of(set), By::controller, above))
    for (Object& pod : store.list("pods", ns_of(set), By::controller, uid_of(*sibling)))
      related.push_back(std::move(pod));
  return related;
}

void sort_for_deletion(std::vector<Object>& pods, const std::vector<Object>& related, WallTime now) {
  std::map<std::string, int> on_node;
  for (const Object& pod : related)
    if (is_active(*pod)) ++on_node[text(*pod, "/spec/nodeName")];
  // A condition without a time counts as old. The real controller takes it for new, but a kubelet always writes one.
  const auto age = [now](const Json& pod) {
    const auto written = k8s::parse_time(text(condition(pod, "Ready"), "/lastTransitionTime"));
    const WallTime since = written ? *written : WallTime();
    return pod_ready(pod) && since < now ? std::bit_width(static_cast<std::uint64_t>((now - since).count())) : 0;
  };
  const auto rank = [&](const Json& pod) {
    const std::string phase = text(pod, "/status/phase"), node = text(pod, "/spec/nodeName");
    const auto cost = parse_number<std::int32_t>(annotation(pod, "controller.kubernetes.io/pod-deletion-cost"));
    return std::tuple(!node.empty(),
                      phase == "Running"   ? 2
                      : phase == "Unknown" ? 1
                                           : 0,
                      pod_ready(pod), cost.value_or(0), -on_node[node], age(pod));
  };
  std::sort(pods.begin(), pods.end(), [&](const Object& one, const Object& other) {
    const auto first = rank(*one), second = rank(*other);
    return first != second ? first < second : uid_of(*one) < uid_of(*other);
  });
}

bool quota_refuses_pod(const Store& store, const std::string& ns) {
  for (const Object& quota : store.list("resourcequotas", ns)) {
    if (!at(*quota, "/spec/scopes").is_null() || !at(*quota, "/spec/scopeSelector").is_null()) continue;
    std::int64_t all = 0, unfinished = 0;
    for (const Object& pod : store.list("pods", ns)) ++all, unfinished += pod_finished(*pod) ? 0 : 1;
    const Json& limits = at(*quota, "/spec/hard");
    for (const auto& [name, used] : {std::pair("pods", unfinished), {"count/pods", all}}) {
      if (!limits.is_object() || !limits.contains(name)) continue;
      const Json& hard = limits.at(name);
      const auto most = hard.is_string() ? parse_number<std::int64_t>(hard.get<std::string>()) : std::nullopt;
      if (used >= (hard.is_number() ? hard.get<std::int64_t>() : most.value_or(used + 1))) return true;
    }
  }
  return false;
}

}  // namespace haulout::sim
