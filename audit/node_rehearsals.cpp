#include "audit/node_rehearsals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "drain/reasons.hpp"
#include "placement/room.hpp"

namespace haulout::audit {
namespace {

using sim::Json;

// The label by which a DaemonSet of the world runs on the drained node only.
constexpr const char* here_label = "sim.haulout.dev/drained";

// Which pods a world has.
class Choice {
 public:
  Choice(const World& world, const std::string& node) : world_(world), kept_(world.pods.size(), false) {
    const auto here = world.on_node.find(node);
    if (here != world.on_node.end())
      for (const std::size_t pod : here->second) keep_with_relatives(pod);
    for (std::size_t i = 0; i < world.pods.size(); ++i)
      if (world.pods[i].pod.node_name.empty() || world.pods[i].pod.terminating()) keep(i);
  }

  bool has(std::size_t pod) const { return kept_[pod]; }
  const std::set<std::size_t>& groups() const { return groups_; }
  const std::set<std::size_t>& budgets() const { return budgets_; }

 private:
  void keep(std::size_t pod) { kept_[pod] = true; }

  void keep_group(std::size_t index) {
    if (!groups_.insert(index).second) return;
    for (const std::size_t pod : world_.groups[index].pods)
      if (!drain::is_daemon_pod(world_.pods[pod].pod)) keep(pod);
  }

  void keep_with_relatives(std::size_t index) {
    keep(index);
    const WorldPod& pod = world_.pods[index];
    // All pods of a DaemonSet would be nearly all pods of the cluster, and the others do not matter.
    if (drain::is_daemon_pod(pod.pod)) return;
    keep_group(pod.group);
    for (const std::size_t budget : pod.budgets) {
      if (!budgets_.insert(budget).second) continue;
      for (const std::size_t member : world_.budgets[budget].pods) keep_group(world_.pods[member].group);
    }
  }

  const World& world_;
  std::vector<bool> kept_;
  std::set<std::size_t> groups_;
  std::set<std::size_t> budgets_;
};

std::string quantity(std::int64_t thousandths) {
  return std::to_string(std::max<std::int64_t>(0, thousandths)) + "m";
}

// Returns the node without what large clusters have much of and no drain reads, and with only the room that the pods
// which are not in the world leave.
Json shrunk(const World& world, const sim::Object& node, const Choice& choice) {
  Json small = *node;
  small["metadata"].erase("managedFields");
  if (small.contains("status")) small["status"].erase("images");
  const auto pods = world.on_node.find(sim::name_of(*node));
  placement::Amounts used;
  if (pods != world.on_node.end())
    for (const std::size_t pod : pods->second)
      if (!choice.has(pod) && !world.pods[pod].pod.finished())
        placement::add(used, placement::requests_of(*world.pods[pod].object));
  if (used.empty()) return small;
  const placement::Amounts limits = placement::limits_of(*node);
  if (limits.empty()) return small;  // the node has no sizes
  Json left = Json::object();
  for (const auto& [resource, limit] : limits) left[resource] = quantity(limit - placement::amount(used, resource));
  small["status"]["allocatable"] = std::move(left);
  return small;
}

// Restricts a DaemonSet to the drained node.
Json only_here(const sim::Object& set) {
  Json own = *set;
  own.merge_patch(
      {{"spec", {{"template", {{"spec", {{"affinity", nullptr}, {"nodeSelector", {{here_label, "true"}}}}}}}}}});
  return own;
}

bool is_controller(std::string_view resource) {
  return resource == "deployments" || resource == "replicasets" || resource == "statefulsets" ||
         resource == "replicationcontrollers" || resource == "jobs";
}

// Adds the controllers of the pods that the world has. Any other one would create its pods anew.
void add_controllers(const World& world, const Choice& choice, std::vector<Json>& objects) {
  std::set<std::string> owners;  // UIDs
  for (const std::size_t group : choice.groups()) {
    if (world.groups[group].object) owners.insert(sim::uid_of(*world.groups[group].object));
    for (const std::size_t pod : world.groups[group].pods)
      if (const auto& controller = world.pods[pod].pod.controller) owners.insert(controller->uid);
  }
  for (const sim::ResourceInfo& info : sim::all_resources()) {
    if (!is_controller(info.resource)) continue;
    for (const sim::Object& object : world.store().list(info.resource)) {
      const Json& above = sim::controller_of(*object);
      if (owners.contains(sim::uid_of(*object)) || (!above.is_null() && owners.contains(sim::text(above, "/uid"))))
        objects.push_back(*object);
    }
  }
}

void add_pods(const World& world, const Choice& choice, const std::string& node, std::vector<Json>& objects) {
  std::set<std::string> sets;
  for (std::size_t i = 0; i < world.pods.size(); ++i) {
    const k8s::Pod& pod = world.pods[i].pod;
    if (!choice.has(i)) continue;
    objects.push_back(*world.pods[i].object);
    objects.back()["metadata"].erase("managedFields");
    if (drain::is_daemon_pod(pod) && pod.node_name == node) sets.insert(pod.controller->uid);
  }
  for (const sim::Object& set : world.store().list("daemonsets"))
    if (sets.contains(sim::uid_of(*set))) objects.push_back(only_here(set));
}

void add_volumes(const World& world, const Choice& choice, const std::string& node, std::vector<Json>& objects) {
  std::set<std::string> namespaces, volumes;
  for (std::size_t i = 0; i < world.pods.size(); ++i)
    if (choice.has(i) && !world.pods[i].pod.claims.empty()) namespaces.insert(world.pods[i].pod.ns);
  for (const std::string& ns : namespaces)
    for (const sim::Object& claim : world.store().list("persistentvolumeclaims", ns)) {
      objects.push_back(*claim);
      volumes.insert(sim::text(*claim, "/spec/volumeName"));
    }
  for (const sim::Object& attachment : world.store().list("volumeattachments")) {
    const std::string volume = sim::text(*attachment, "/spec/source/persistentVolumeName");
    if (sim::text(*attachment, "/spec/nodeName") != node && !volumes.contains(volume)) continue;
    objects.push_back(*attachment);
    volumes.insert(volume);
  }
  for (const std::string& volume : volumes)
    if (const sim::Object object = world.store().get({"persistentvolumes", "", volume})) objects.push_back(*object);
  for (const char* kind : {"csidrivers", "storageclasses"})
    for (const sim::Object& object : world.store().list(kind)) objects.push_back(*object);
}

std::string owner_of(const World& world, const std::string& pod) {
  const OwnerName* owner = world.owner_of(pod);
  return owner ? owner->text() : std::string();
}

bool is_left(const drain::PodReport& pod) {
  using drain::PodOutcome;
  return pod.outcome == PodOutcome::refused || pod.outcome == PodOutcome::waiting ||
         pod.outcome == PodOutcome::terminating;
}

std::optional<Duration> since(const std::optional<WallTime>& time, WallTime began) {
  return time ? std::optional<Duration>(*time - began) : std::nullopt;
}

}  // namespace

std::vector<Json> world_for(const World& world, const std::string& node) {
  const Choice choice(world, node);
  std::vector<Json> objects;
  for (const sim::Object& object : world.nodes) {
    objects.push_back(shrunk(world, object, choice));
    if (sim::name_of(*object) == node) objects.back()["metadata"]["labels"][here_label] = "true";
  }
  for (const sim::Object& object : world.store().list("namespaces")) objects.push_back(*object);
  add_pods(world, choice, node, objects);
  add_controllers(world, choice, objects);
  for (const std::size_t index : choice.budgets()) {
    const k8s::PodDisruptionBudget& budget = world.budgets[index].budget;
    objects.push_back(*world.store().get({"poddisruptionbudgets", budget.ns, budget.name}));
  }
  add_volumes(world, choice, node, objects);
  return objects;
}

Result<rehearse::Rehearsal> rehearse_node(const World& world, const std::string& node,
                                          const rehearse::Assumptions& assumptions) {
  rehearse::RehearsalInput input{.snapshot = {.read_at = world.now},
                                 .nodes = {node},
                                 .selector = {},
                                 .drain = world.drain,
                                 .assumptions = assumptions};
  return rehearse::rehearse(std::move(input), world_for(world, node));
}

namespace {

Culprit culprit_of(const World& world, const drain::PodReport& pod, const drain::Report& report) {
  Culprit culprit{pod.key(), owner_of(world, pod.key()), pod.reason, pod.message};
  if (!culprit.reason.empty()) return culprit;
  // Nothing was wrong with the pod when the time of the drain was over.
  const bool terminates = pod.outcome == drain::PodOutcome::terminating;
  culprit.reason = terminates ? reason::terminating : std::string(to_string(report.outcome));
  culprit.text = fmt::format("{}: {}", report.message, terminates ? "it still terminates" : "it is not evicted yet");
  return culprit;
}

}  // namespace

void tell(NodeResult& result, const World& world, const rehearse::Rehearsal& rehearsal) {
  const drain::Report& report = rehearsal.drains.front();
  if (report.outcome != drain::Outcome::drained) {
    result.verdict = Verdict::blocked;
    for (const drain::PodReport& pod : report.pods)
      if (is_left(pod)) result.blocked_by.push_back(culprit_of(world, pod, report));
    if (result.blocked_by.empty())
      result.blocked_by.push_back({{}, {}, std::string(to_string(report.outcome)), report.message});
  } else {
    result.verdict = rehearsal.no_room.empty() ? Verdict::drains : Verdict::drains_without_room;
    result.took = report.finished_at - report.started_at;
  }
  for (const rehearse::NoRoom& pod : rehearsal.no_room) result.without_room.push_back(pod.pod);
  for (const rehearse::Timeline::Row& row : rehearsal.timeline.rows()) {
    Step step{row.pod, owner_of(world, row.pod)};
    if (!row.waits.empty()) step.wait_from = since(row.waits.front().from, report.started_at);
    step.evicted = since(row.leaving ? row.leaving : row.sent, report.started_at);
    step.gone = since(row.vanished, report.started_at);
    if (step.wait_from || step.evicted || step.gone) result.timeline.push_back(std::move(step));
  }
}

}  // namespace haulout::audit
