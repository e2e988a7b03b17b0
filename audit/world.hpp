// The objects of a cluster as an audit looks at them: pods with their owners, budgets with the pods that they select,
// and what a drain would decide about each pod. Every look-up uses an index, so the work grows with the number of
// objects, and not with pods times budgets or nodes. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "audit/report.hpp"
#include "drain/controller_book.hpp"
#include "drain/options.hpp"
#include "drain/pod_filter.hpp"
#include "k8s/objects.hpp"
#include "rehearse/stage.hpp"

namespace haulout::audit {

struct WorldPod {
  k8s::Pod pod;
  sim::Object object;
  std::size_t group = 0;               // index into World::groups
  drain::Decision decision{};          // what a drain of its node does with it
  std::vector<std::size_t> budgets{};  // indexes into World::budgets

  // Returns true if a drain of its node makes it leave, at once or later.
  bool leaves() const;
};

// The pods of one owner.
struct Group {
  OwnerName owner;
  std::string team{};
  sim::Object object{};  // the owner, or null if it is not in the snapshot
  drain::Controller controller{};
  std::vector<std::size_t> pods{};
};

struct WorldBudget {
  k8s::PodDisruptionBudget budget;
  std::vector<std::size_t> pods{};
  OwnerName name() const { return {budget.ns, "PodDisruptionBudget", budget.name}; }
};

struct World {
  std::unique_ptr<rehearse::Stage> stage;
  drain::Options drain;  // how a drain treats pods
  WallTime now{};
  bool of_manifests = false;
  std::vector<sim::Object> nodes{};
  std::vector<WorldPod> pods{};
  std::vector<Group> groups{};
  std::vector<WorldBudget> budgets{};
  std::map<std::string, std::vector<std::size_t>> on_node{};  // pods by the name of their node
  std::map<std::string, std::size_t> by_key{};                // pods by "namespace/name"
  std::uint64_t compared = 0;  // how often the labels of a pod were compared with a selector, as a measure of work

  const sim::Store& store() const { return stage->cluster.store(); }
  const Group& group_of(const WorldPod& pod) const { return groups[pod.group]; }
  // Returns the owner of the pod with this key; nullptr if there is no such pod.
  const OwnerName* owner_of(const std::string& key) const;
};

struct WorldInput {
  std::vector<sim::Json> objects;
  WallTime now;  // time of the snapshot
  drain::Options drain;
  rehearse::Assumptions assumptions;
  std::vector<std::string> team_labels;  // the first one that the owner, its pods or their namespace have counts
  bool of_manifests = false;             // there are no nodes; the budgets have no status yet
};

// Fails with Errc::decode if an object cannot be decoded.
Result<World> make_world(WorldInput input);

}  // namespace haulout::audit
