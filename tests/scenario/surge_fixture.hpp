// Fixture with Deployments whose pods can be surged, that is replaced before they are evicted (`--surge`).
#pragma once

#include <string>
#include <vector>

#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {

class SurgeScenario : public Scenario {
 protected:
  static constexpr const char* mark = "haulout.dev/surged";
  static constexpr const char* hash_label = "pod-template-hash";

  SurgeScenario() {
    options.timeout = std::chrono::minutes(30);
    options.guards.surge = drain::Surge::all;
    options.guards.surge_limit = std::chrono::minutes(1);
    cluster.switches().quotas = true;
  }

  // Adds a Deployment whose pods are all on `node` when the drain begins. `changes` are merged over it.
  void deploy(const std::string& name, int replicas, const Json& changes = Json::object(),
              const std::string& node = "n1") {
    Json deployment = a_workload("Deployment", name, replicas, {{"terminationGracePeriodSeconds", 5}},
                                 {{"sim.haulout.dev/prefers-node", node}});
    deployment["metadata"]["annotations"]["sim.haulout.dev/template-hash"] = "true";
    deployment.merge_patch(changes);
    add(deployment);
  }
  static Json of_template(const Json& changes) { return {{"spec", {{"template", changes}}}}; }
  void start_slowly(Duration time) {
    after(Duration::zero(), [this, time] { cluster.timing().pod_start = time; });
  }
  std::vector<Json> pods_of(const std::string& name) const {
    std::vector<Json> pods;
    for (const Json& pod : cluster.all("pods"))
      if (sim::name_of(pod).starts_with(name + "-") && !sim::terminating(pod)) pods.push_back(pod);
    return pods;
  }
  std::size_t ready_of(const std::string& name) const {
    const auto pods = pods_of(name);
    return static_cast<std::size_t>(std::count_if(pods.begin(), pods.end(), sim::pod_ready));
  }
  // From now on, `fewest_` is the smallest number of Ready pods of the Deployment, and `most_unowned_` the largest
  // number of its pods that no ReplicaSet owns.
  void watch_ready_now(const std::string& name) {
    watched_ = name;
    fewest_ = ready_of(name);
    if (listens_) return;
    listens_ = true;
    cluster.on_change([this](const sim::Change& change) {
      if (change.key.resource != "pods") return;
      fewest_ = std::min(fewest_, ready_of(watched_));
      most_unowned_ = std::max(most_unowned_, unowned(watched_).size());
    });
  }
  void watch_ready(const std::string& name) {
    after(Duration::zero(), [this, name] { watch_ready_now(name); });
  }
  std::vector<sim::AuditEntry> patches() const { return requests("patch", "pods"); }
  // Returns the names of the pods with the drain's mark.
  std::vector<std::string> marked() const {
    std::vector<std::string> names;
    for (const Json& pod : cluster.all("pods"))
      if (!sim::annotation(pod, mark).empty()) names.push_back(sim::name_of(pod));
    return names;
  }
  // Returns the names of the pods of the Deployment that no ReplicaSet owns.
  std::vector<std::string> unowned(const std::string& name) const {
    std::vector<std::string> names;
    for (const Json& pod : pods_of(name))
      if (sim::controller_of(pod).is_null()) names.push_back(sim::name_of(pod));
    return names;
  }

  std::size_t fewest_ = 1000;
  std::size_t most_unowned_ = 0;

 private:
  std::string watched_;
  bool listens_ = false;
};

}  // namespace haulout::scenario
