#include "tests/worlds/surges.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace haulout::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* hash_label = "pod-template-hash";
constexpr const char* surge_annotation = "haulout.dev/surge";
constexpr const char* mark_annotation = "haulout.dev/surged";
constexpr const char* never_ready = "sim.haulout.dev/never-ready";
// A person repairs what keeps replacements from being Ready at this time at the latest.
constexpr seconds repaired_until(200);

// One Deployment with one ReplicaSet.
struct Rolled {
  std::string ns, app, hash, set;
  std::uint64_t replicas = 1;
  Json above, below;  // the Deployment and the ReplicaSet
};

void put_below(Json& metadata, const char* kind, const std::string& name) {
  metadata["ownerReferences"] = {
      {{"apiVersion", "apps/v1"}, {"kind", kind}, {"name", name}, {"uid", "uid-of-" + name}, {"controller", true}}};
}

std::vector<Json> pods_of(const TestCluster& cluster, const std::string& ns, const std::string& app) {
  std::vector<Json> result;
  for (const Json& pod : cluster.all("pods"))
    if (ns_of(pod) == ns && text(pod, "/metadata/labels/app") == app) result.push_back(pod);
  return result;
}

// Deletes the pods that are not Ready, as people do after they have repaired the template.
void delete_unready(TestCluster& cluster, const std::string& ns, const std::string& app) {
  for (const Json& pod : pods_of(cluster, ns, app))
    if (!pod_ready(pod)) cluster.delete_gracefully("pods", ns, name_of(pod));
}

// Deletes a Deployment with what it owns, as the garbage collector does. A pod that its ReplicaSet has released stays.
void delete_deployment(TestCluster& cluster, const std::string& ns, const std::string& app, const std::string& set) {
  cluster.remove("deployments", ns, app);
  cluster.remove("replicasets", ns, set);
  for (const Json& pod : pods_of(cluster, ns, app))
    if (!controller_of(pod).is_null()) cluster.delete_gracefully("pods", ns, name_of(pod));
}

class Surges {
 public:
  Surges(GeneratedWorld& world, const GeneratorOptions& options)
      : world_(world), options_(options), rng_(world.seed * 0x9e3779b97f4a7c15u + 21) {
    for (const Json& object : world_.objects)
      if (text(object, "/kind") == "Node") nodes_.push_back(name_of(object));
  }

  void add() {
    if (!rng_.chance(70)) return;
    for (std::uint64_t i = pick(1, 3); i > 0; --i) deployment(i);
  }

 private:
  std::uint64_t pick(std::uint64_t low, std::uint64_t high) { return rng_.between(low, high); }
  template <class Value, std::size_t N>
  Value one_of(const Value (&values)[N]) {
    return values[pick(0, N - 1)];
  }
  void tell(const std::string& what) { world_.oddities.push_back("surge-" + what); }
  void heal(const std::string& what, std::function<void(TestCluster&)> act) {
    world_.incidents.push_back({world_.moment(rng_, repaired_until), what, std::move(act), true});
  }
  void incident(const std::string& what, std::function<void(TestCluster&)> act) {
    world_.incidents.push_back({world_.moment(rng_, seconds(100)), what, std::move(act)});
  }

  void deployment(std::uint64_t number) {
    Rolled one;
    one.ns = rng_.chance(30) ? fmt::format("team-{}", pick(1, 3)) : "shop";
    one.app = fmt::format("rolled{}", number);
    one.hash = fmt::format("7c{}d9", number);
    one.set = one.app + "-" + one.hash;
    one.replicas = pick(1, 5);
    Json pods_labels = {{"app", one.app}, {hash_label, one.hash}};
    Json template_metadata = {{"labels", pods_labels}, {"annotations", annotations()}};
    const Json spec = {{"terminationGracePeriodSeconds", pick(0, 12)},
                       {"containers", {{{"name", "app"}, {"image", "example.com/app:1"}}}}};
    Json of_template = {{"metadata", template_metadata}, {"spec", spec}};
    one.above = {{"kind", "Deployment"},
                 {"metadata", {{"name", one.app}, {"namespace", one.ns}, {"uid", "uid-of-" + one.app}}},
                 {"spec",
                  {{"replicas", one.replicas},
                   {"selector", {{"matchLabels", {{"app", one.app}}}}},
                   {"strategy", strategy()},
                   {"template", of_template}}},
                 {"status", {{"observedGeneration", 1}}}};
    one.above["spec"]["template"]["metadata"]["labels"].erase(hash_label);
    if (rng_.chance(15)) {
      const bool waits = rng_.chance(60);
      one.above["spec"]["podReplacementPolicy"] = waits ? "TerminationComplete" : "TerminationStarted";
      if (waits) tell("termination-complete");
    }
    one.below = {
        {"kind", "ReplicaSet"},
        {"metadata", {{"name", one.set}, {"namespace", one.ns}, {"uid", "uid-of-" + one.set}}},
        {"spec",
         {{"replicas", one.replicas}, {"selector", {{"matchLabels", pods_labels}}}, {"template", of_template}}}};
    put_below(one.below["metadata"], "Deployment", one.app);
    if (rng_.chance(10)) own_port(one);
    if (rng_.chance(12)) own_volume(one);
    const Json pod_template = one.below["spec"]["template"];
    obstacle(one);
    pods(one, pod_template);
    if (rng_.chance(75)) budget(one);
    if (options_.other_people) people(one);
    world_.objects.push_back(one.above);
    world_.objects.push_back(one.below);
  }

  Json annotations() {
    Json result = Json::object();
    if (rng_.chance(50)) result["sim.haulout.dev/starts-after"] = fmt::format("{}ms", pick(100, 9'000));
    if (rng_.chance(50)) result["sim.haulout.dev/terminates-after"] = fmt::format("{}ms", pick(10, 9'000));
    if (rng_.chance(25)) result[surge_annotation] = rng_.chance(60) ? "true" : "false";
    return result;
  }

  Json strategy() {
    if (rng_.chance(12)) {
      tell("recreate");
      return {{"type", "Recreate"}};
    }
    static const Json most[] = {nullptr, 0, 1, "25%", "100%"};
    const Json& max_surge = most[pick(0, std::size(most) - 1)];
    Json result = {{"type", "RollingUpdate"}, {"rollingUpdate", Json::object()}};
    if (!max_surge.is_null()) result["rollingUpdate"]["maxSurge"] = max_surge;
    return result;
  }

  void own_port(Rolled& one) {
    tell("host-port");
    for (Json* object : {&one.above, &one.below})
      (*object)["spec"]["template"]["spec"]["containers"][0]["ports"] = {{{"hostPort", 8080}, {"containerPort", 80}}};
  }

  void own_volume(Rolled& one) {
    static constexpr const char* modes[] = {"ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany", "ReadOnlyMany"};
    const char* mode = one_of(modes);
    const std::string claim = "files-" + one.app, volume = fmt::format("pv-{}-{}", one.ns, claim);
    tell("claim-" + std::string(mode));
    for (Json* object : {&one.above, &one.below})
      (*object)["spec"]["template"]["spec"]["volumes"] = {
          {{"name", "files"}, {"persistentVolumeClaim", {{"claimName", claim}}}}};
    world_.objects.push_back({{"kind", "PersistentVolumeClaim"},
                              {"metadata", {{"name", claim}, {"namespace", one.ns}}},
                              {"spec", {{"accessModes", {mode}}, {"volumeName", volume}}}});
    // Without a CSI source, nothing has to be attached.
    world_.objects.push_back({{"kind", "PersistentVolume"},
                              {"metadata", {{"name", volume}}},
                              {"spec",
                               {{"accessModes", {mode}},
                                {"nfs", {{"server", "files.example"}, {"path", "/"}}},
                                {"claimRef", {{"namespace", one.ns}, {"name", claim}}}}}});
  }

  // Keeps replacements from being Ready until a person repairs that. The pods that are there have the template from
  // before.
  void obstacle(Rolled& one) {
    const std::string ns = one.ns, app = one.app, set = one.set;
    Json& of_template = one.below["spec"]["template"];
    switch (pick(0, 9)) {
      case 0:
        tell("never-ready");
        of_template["metadata"]["annotations"][never_ready] = "true";
        heal("image repaired", [ns, app, set](TestCluster& cluster) {
          cluster.patch("replicasets", ns, set,
                        {{"spec", {{"template", {{"metadata", {{"annotations", {{never_ready, nullptr}}}}}}}}}});
          delete_unready(cluster, ns, app);
        });
        break;
      case 1:
        tell("no-room");
        of_template["spec"]["nodeSelector"] = {{"kubernetes.io/hostname", world_.node}};
        heal("room elsewhere", [ns, app, set](TestCluster& cluster) {
          cluster.patch("replicasets", ns, set, {{"spec", {{"template", {{"spec", {{"nodeSelector", nullptr}}}}}}}});
          delete_unready(cluster, ns, app);
        });
        break;
      case 2:
      case 3: quota(ns); break;
      default: break;
    }
  }

  // The quota admits no pod from some time on: as many pods as there are then.
  void quota(const std::string& ns) {
    tell("quota");
    const char* limit = rng_.chance(60) ? "pods" : "count/pods";
    world_.incidents.push_back({Duration::zero(), "a quota", [ns, limit](TestCluster& cluster) {
                                  const auto all = cluster.store().list("pods", ns);
                                  cluster.switches().quotas = true;
                                  cluster.create("resourcequotas",
                                                 {{"metadata", {{"name", "few-pods"}, {"namespace", ns}}},
                                                  {"spec", {{"hard", {{limit, std::to_string(all.size())}}}}}});
                                }});
    heal("quota removed", [ns](TestCluster& cluster) { cluster.remove("resourcequotas", ns, "few-pods"); });
  }

  void pods(const Rolled& one, const Json& of_template) {
    const bool left_over = rng_.chance(12);
    if (left_over) tell("left-over");
    for (std::uint64_t i = 0; i < one.replicas; ++i) {
      Json metadata = of_template["metadata"];
      metadata["name"] = fmt::format("{}-{}", one.set, i);
      metadata["namespace"] = one.ns;
      const bool surged = i == 0 && left_over;
      const bool ready = surged || !rng_.chance(8);
      Json spec = of_template["spec"];
      spec["nodeName"] = surged || rng_.chance(60) ? world_.node : nodes_[pick(0, nodes_.size() - 1)];
      if (surged)
        leave_surged(one, metadata);
      else
        put_below(metadata, "ReplicaSet", one.set);
      const char* status = ready ? "True" : "False";
      world_.objects.push_back(
          {{"kind", "Pod"},
           {"metadata", metadata},
           {"spec", spec},
           {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", status}}}}}}});
    }
  }

  void leave_surged(const Rolled& one, Json& metadata) {
    metadata["labels"].erase(hash_label);
    const Json mark = {{"run", "earlier"},
                       {"by", "drain on laptop"},
                       {"at", "2026-01-01T00:00:00Z"},
                       {"node", world_.node},
                       {"hash", one.hash},
                       {"owner", one.set},
                       {"ownerUid", "uid-of-" + one.set},
                       {"ready", pick(1, one.replicas)}};
    metadata["annotations"][mark_annotation] = mark.dump();
  }

  void budget(const Rolled& one) {
    static const Json kinds[] = {{{"minAvailable", 1}},   {{"minAvailable", "50%"}},  {{"minAvailable", "100%"}},
                                 {{"maxUnavailable", 0}}, {{"maxUnavailable", "0%"}}, {{"maxUnavailable", 1}}};
    Json spec = kinds[pick(0, std::size(kinds) - 1)];
    spec["selector"] = {{"matchLabels", {{"app", one.app}}}};
    world_.objects.push_back(
        {{"kind", "PodDisruptionBudget"}, {"metadata", {{"name", one.app}, {"namespace", one.ns}}}, {"spec", spec}});
    heal("budget of a Deployment opened", [ns = one.ns, app = one.app](TestCluster& cluster) {
      cluster.patch(
          "poddisruptionbudgets", ns, app,
          {{"spec",
            {{"minAvailable", 0}, {"maxUnavailable", nullptr}, {"unhealthyPodEvictionPolicy", "AlwaysAllow"}}}});
    });
  }

  void people(const Rolled& one) {
    const std::string ns = one.ns, app = one.app, set = one.set, hash = one.hash;
    if (rng_.chance(12))
      incident("namespace annotated", [ns, value = rng_.chance(50) ? "true" : "false"](TestCluster& cluster) {
        cluster.patch("namespaces", "", ns, {{"metadata", {{"annotations", {{surge_annotation, value}}}}}});
      });
    if (rng_.chance(30)) {
      tell("scaled");
      const std::uint64_t wanted = rng_.chance(10) ? 0 : pick(1, 6);
      incident("Deployment scaled", [ns, app, wanted](TestCluster& cluster) {
        cluster.patch("deployments", ns, app, {{"spec", {{"replicas", wanted}}}});
      });
    }
    if (rng_.chance(8)) {
      tell("deleted");
      incident("Deployment deleted",
               [ns, app, set](TestCluster& cluster) { delete_deployment(cluster, ns, app, set); });
    }
    if (!rng_.chance(12)) return;
    tell("label-given-back");
    incident("label given back", [ns, app, hash](TestCluster& cluster) {
      for (const Json& pod : pods_of(cluster, ns, app))
        cluster.patch("pods", ns, name_of(pod), {{"metadata", {{"labels", {{hash_label, hash}}}}}});
    });
  }

  GeneratedWorld& world_;
  const GeneratorOptions& options_;
  SeededRng rng_;
  std::vector<std::string> nodes_;
};

}  // namespace

void add_surges(GeneratedWorld& world, const GeneratorOptions& options) {
  Surges(world, options).add();
}

}  // namespace haulout::sim
