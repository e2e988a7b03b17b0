#include "audit/world.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <limits>

#include "drain/gangs.hpp"
#include "k8s/codec.hpp"
#include "rehearse/top_controller.hpp"
#include "sim/budgets.hpp"

namespace haulout::audit {
namespace {

using sim::Json;

template <class T>
Result<T> decoded(const sim::Object& object) {
  auto result = k8s::decode<T>(object->dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!result)
    return std::move(result).error().with_context(
        fmt::format("{} {}/{}", sim::text(*object, "/kind"), sim::ns_of(*object), sim::name_of(*object)));
  return result;
}

// A controller that is looked up above a pod.
struct Above {
  OwnerName name;
  std::string api_version;
  std::string uid;
  sim::Object object;  // null if it is not in the snapshot
};

Above above_of(rehearse::TopController top) {
  return {{std::move(top.ns), std::move(top.kind), std::move(top.name)},
          std::move(top.api_version),
          std::move(top.uid),
          std::move(top.object)};
}

drain::Controller controller_of(const Above& above) {
  const k8s::OwnerReference owner{above.api_version, above.name.kind, above.name.name, above.uid, true};
  if (!above.object) return drain::nothing_known_of(owner, above.name.ns, "it is not in the snapshot");
  const std::string& kind = above.name.kind;
  if (kind != "Deployment" && kind != "ReplicaSet" && kind != "StatefulSet")
    return drain::without_scale(owner, above.name.ns, "its kind has no number of replicas");
  auto workload = k8s::decode_workload(above.object->dump(-1, ' ', false, Json::error_handler_t::replace), kind);
  return workload ? drain::controller_of(owner, above.name.ns, *std::move(workload))
                  : drain::nothing_known_of(owner, above.name.ns, workload.error().message());
}

// Returns the owner that a gang itself names; its pods belong to it whatever is between it and them.
std::optional<OwnerName> owner_by_gang(const k8s::Pod& pod) {
  const auto gang = drain::named_gang(pod);
  if (!gang || gang->kind == drain::Gang::Kind::pod_group) return std::nullopt;
  return OwnerName{pod.ns, gang->kind == drain::Gang::Kind::job_set ? "JobSet" : "LeaderWorkerSet", gang->name};
}

std::string team_in(const Json& labels, const std::string& key) {
  if (!labels.is_object()) return {};
  const auto found = labels.find(key);
  return found != labels.end() && found->is_string() ? found->get<std::string>() : std::string();
}

drain::DaemonSetStates daemon_sets(const sim::Store& store) {
  drain::DaemonSetStates states;
  const auto sets = store.list("daemonsets");
  if (sets.empty()) return states;
  for (const sim::Object& pod : store.list("pods")) {
    const Json& owner = sim::controller_of(*pod);
    if (sim::text(owner, "/kind") == "DaemonSet") states[sim::text(owner, "/uid")] = drain::DaemonSetState::gone;
  }
  for (const sim::Object& set : sets) states[sim::uid_of(*set)] = drain::DaemonSetState::exists;
  return states;
}

// Matches budgets with pods. A budget whose selector demands labels is compared only with the pods that have the rarest
// of them; any other one is compared with all pods of its namespace.
class Matching {
 public:
  explicit Matching(World& world) : world_(world) {
    for (std::size_t i = 0; i < world.pods.size(); ++i) {
      const k8s::Pod& pod = world.pods[i].pod;
      namespaces_[pod.ns].push_back(i);
      for (const auto& [key, value] : pod.labels) labels_[term(pod.ns, key, value)].push_back(i);
    }
  }

  void match(std::size_t index) {
    WorldBudget& budget = world_.budgets[index];
    for (const std::size_t candidate : candidates(budget.budget)) {
      ++world_.compared;
      if (!budget.budget.selects(world_.pods[candidate].pod)) continue;
      budget.pods.push_back(candidate);
      world_.pods[candidate].budgets.push_back(index);
    }
  }

 private:
  using Pods = std::vector<std::size_t>;

  static std::string term(const std::string& ns, const std::string& key, const std::string& value) {
    return ns + '/' + key + '=' + value;
  }
  static const Pods& at(const std::map<std::string, Pods>& index, const std::string& term) {
    static const Pods none;
    const auto found = index.find(term);
    return found == index.end() ? none : found->second;
  }

  const Pods& candidates(const k8s::PodDisruptionBudget& budget) const {
    const Pods* best = &at(namespaces_, budget.ns);
    if (!budget.selector) return at(namespaces_, "/");
    for (const auto& requirement : budget.selector->requirements()) {
      if (requirement.op != k8s::LabelSelector::Operator::in || requirement.values.size() != 1) continue;
      const Pods& pods = at(labels_, term(budget.ns, requirement.key, requirement.values.front()));
      if (pods.size() < best->size()) best = &pods;
    }
    return *best;
  }

  World& world_;
  std::map<std::string, Pods> namespaces_;
  std::map<std::string, Pods> labels_;
};

// Computes the status that a budget of a manifest will have when all its pods are Ready.
void expect_all_ready(WorldBudget& of) {
  k8s::PodDisruptionBudget& budget = of.budget;
  const auto expected =
      static_cast<std::int32_t>(std::min<std::size_t>(of.pods.size(), std::numeric_limits<std::int32_t>::max()));
  const std::string& field = budget.max_unavailable.empty() ? budget.min_available : budget.max_unavailable;
  const std::int64_t amount = sim::scaled(Json(field), expected);
  const std::int64_t desired = budget.max_unavailable.empty() ? amount : std::max<std::int64_t>(0, expected - amount);
  budget.expected_pods = budget.current_healthy = expected;
  budget.desired_healthy =
      static_cast<std::int32_t>(std::min<std::int64_t>(desired, std::numeric_limits<std::int32_t>::max()));
  budget.disruptions_allowed = std::max(0, budget.current_healthy - budget.desired_healthy);
  budget.observed_generation = budget.generation;
}

class Reading {
 public:
  explicit Reading(WorldInput input) : input_(std::move(input)) {}

  Result<World> read() {
    world_.stage = std::make_unique<rehearse::Stage>(input_.assumptions, 1, input_.drain.page_size);
    world_.stage->load(std::move(input_.objects), input_.now);
    world_.drain = input_.drain;
    world_.now = input_.now;
    world_.of_manifests = input_.of_manifests;
    world_.nodes = world_.store().list("nodes");
    if (auto pods = read_pods(); !pods) return std::move(pods).error();
    if (auto budgets = read_budgets(); !budgets) return std::move(budgets).error();
    return std::move(world_);
  }

 private:
  Result<> read_pods() {
    const drain::DaemonSetStates states = daemon_sets(world_.store());
    for (sim::Object& object : world_.store().list("pods")) {
      auto pod = decoded<k8s::Pod>(object);
      if (!pod) return std::move(pod).error();
      WorldPod& entry = world_.pods.emplace_back(WorldPod{*std::move(pod), std::move(object)});
      entry.decision = drain::decide(entry.pod, world_.drain.policy, states, world_.now);
      entry.group = group_for(entry);
      const std::size_t index = world_.pods.size() - 1;
      world_.groups[entry.group].pods.push_back(index);
      world_.by_key.emplace(entry.pod.key(), index);
      if (!entry.pod.node_name.empty()) world_.on_node[entry.pod.node_name].push_back(index);
    }
    return {};
  }

  Result<> read_budgets() {
    for (const sim::Object& object : world_.store().list("poddisruptionbudgets")) {
      auto budget = decoded<k8s::PodDisruptionBudget>(object);
      if (!budget) return std::move(budget).error();
      world_.budgets.push_back({*std::move(budget)});
    }
    Matching matching(world_);
    for (std::size_t i = 0; i < world_.budgets.size(); ++i) {
      matching.match(i);
      if (world_.of_manifests) expect_all_ready(world_.budgets[i]);
    }
    return {};
  }

  std::size_t group_for(const WorldPod& entry) {
    const k8s::Pod& pod = entry.pod;
    Above above{{pod.ns, "Pod", pod.name}, "v1", pod.uid, entry.object};
    if (pod.controller) {
      // A pod that a drain has surged has no owner for a while: its mark names one.
      const k8s::OwnerReference& owner = *pod.controller;
      above = above_of(rehearse::top_controller(
          world_.store(), pod.ns,
          {{"apiVersion", owner.api_version}, {"kind", owner.kind}, {"name", owner.name}, {"uid", owner.uid}}));
    }
    if (auto gang = owner_by_gang(pod)) {
      above.name = *std::move(gang);
      above.object = nullptr;
    }
    const auto [known, is_new] = groups_.try_emplace(above.name, world_.groups.size());
    if (!is_new) return known->second;
    Group group{above.name, team_of(above, entry), above.object, controller_of(above)};
    world_.groups.push_back(std::move(group));
    return known->second;
  }

  std::string team_of(const Above& above, const WorldPod& entry) const {
    const sim::Object ns = world_.store().get({"namespaces", "", entry.pod.ns});
    for (const std::string& key : input_.team_labels) {
      for (const sim::Object& from : {above.object, entry.object, ns}) {
        std::string team = from ? team_in(sim::at(*from, "/metadata/labels"), key) : std::string();
        if (!team.empty()) return team;
      }
    }
    return {};
  }

  WorldInput input_;
  World world_;
  std::map<OwnerName, std::size_t> groups_;
};

}  // namespace

bool WorldPod::leaves() const {
  return decision.verdict != drain::Verdict::skip && !pod.finished() && !pod.terminating();
}

const OwnerName* World::owner_of(const std::string& key) const {
  const auto found = by_key.find(key);
  return found == by_key.end() ? nullptr : &group_of(pods[found->second]).owner;
}

Result<World> make_world(WorldInput input) {
  return Reading(std::move(input)).read();
}

}  // namespace haulout::audit
