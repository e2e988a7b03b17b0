#include "tests/worlds/surges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "sim/call.hpp"
#include "sim/status_bodies.hpp"

namespace haulout::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* hash_label = "pod-template-hash";
constexpr const char* surge_annotation = "haulout.dev/surge";
constexpr const char* mark_annotation = "haulout.dev/surged";
constexpr const char* never_ready = "sim.haulout.dev/never-ready";
constexpr const char* deletion_cost = "controller.kubernetes.io/pod-deletion-cost";
// When the pods of these worlds were created: before the virtual clock starts.
constexpr const char* created = "2025-12-31T20:00:00Z";
// A person repairs what keeps replacements from being Ready at this time at the latest.
constexpr seconds repaired_until(200);

// A Deployment with one ReplicaSet, or with two while it is rolled out.
struct Rolled {
  std::string ns, app, hash, set;
  std::uint64_t replicas = 1;  // of the Deployment
  Json above, below;           // the Deployment and the ReplicaSet
  std::string older;           // the name of the ReplicaSet of the template before; empty if it has no pods
};

// How a pod looks that a drain has surged, or that only seems so.
enum class Left {
  nothing,
  surged,            // an earlier run on this node has released it
  relabelled,        // an earlier run has restored the label, and was killed before it removed the mark
  surged_elsewhere,  // on another node, whose drain has released it
  foreign,           // without owner; its mark is about another node
  copied,            // with its owner; a tool has copied the annotation from a pod of another node
  garbage,           // with its owner; the annotation is no mark
  orphaned,          // the ReplicaSet that released it has gone
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
void delete_set(TestCluster& cluster, const std::string& ns, const std::string& set) {
  cluster.remove("replicasets", ns, set);
  for (const Json& pod : cluster.all("pods"))
    if (ns_of(pod) == ns && text(controller_of(pod), "/name") == set)
      cluster.delete_gracefully("pods", ns, name_of(pod));
}
void delete_deployment(TestCluster& cluster, const std::string& ns, const std::string& app) {
  cluster.remove("deployments", ns, app);
  for (const Json& set : cluster.all("replicasets"))
    if (ns_of(set) == ns && text(controller_of(set), "/name") == app) delete_set(cluster, ns, name_of(set));
}

// A client that annotates each released pod of a namespace every second, so that other clients get conflicts.
struct Annotator {
  std::string ns;
  int times = 60;
  void operator()(TestCluster& cluster) const {
    for (const Json& pod : cluster.all("pods"))
      if (ns_of(pod) == ns && !annotation(pod, mark_annotation).empty())
        cluster.patch("pods", ns, name_of(pod),
                      {{"metadata", {{"annotations", {{"example.com/seen", fmt::format("{}", times)}}}}}});
    if (times > 1) cluster.after(seconds(1), [next = Annotator{ns, times - 1}, &cluster] { next(cluster); });
  }
};

// A mutating webhook: of a patch that releases a pod of the namespace it undoes one half. Returns the answer; nullopt
// for all other requests.
std::optional<http::Response> half_released(TestCluster& cluster, const Call& call, const std::string& ns,
                                            bool restores_label) {
  const bool patches = call.verb == "patch" && call.info && call.info->resource == "pods" && call.subresource.empty();
  if (!patches || call.ns != ns) return std::nullopt;
  const Json before = cluster.get("pods", ns, call.name), body = Json::parse(call.request.body, nullptr, false);
  const bool releases = !at(body, "/metadata/annotations").is_null() && body["metadata"].contains("labels");
  // The server itself refuses the patch of another version.
  if (!releases || text(before, "/metadata/resourceVersion") != text(body, "/metadata/resourceVersion"))
    return std::nullopt;
  const char* kept = restores_label ? "annotations" : "labels";
  cluster.patch("pods", ns, call.name, {{"metadata", {{kept, body["metadata"][kept]}}}});
  return json_response(200, cluster.get("pods", ns, call.name).dump());
}

class Surges {
 public:
  Surges(GeneratedWorld& world, const GeneratorOptions& options)
      : world_(world), options_(options), rng_(world.seed * 0x9e3779b97f4a7c15u + 21) {
    for (const Json& object : world_.objects)
      if (text(object, "/kind") == "Node") nodes_.push_back(name_of(object));
  }

  void add() {
    if (!rng_.chance(90)) return;
    const std::uint64_t count = pick(1, 3);
    together_ = count > 1 && rng_.chance(40);
    for (std::uint64_t i = count; i > 0; --i) deployment(i);
    if (together_) budget("shop", "together", {{"instance", "shop"}});
    if (rng_.chance(10)) webhook(rng_.chance(30) ? "team-1" : "shop");
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
    one.ns = rng_.chance(30) && !together_ ? fmt::format("team-{}", pick(1, 3)) : "shop";
    one.app = fmt::format("rolled{}", number);
    one.hash = fmt::format("7c{}d9", number);
    one.set = one.app + "-" + one.hash;
    // Under a budget of several Deployments, one of them has a single pod, and others are not surged.
    one.replicas = together_ && number == 1 && rng_.chance(80) ? 1 : pick(1, 5);
    Json pods_labels = {{"app", one.app}, {hash_label, one.hash}};
    if (together_) pods_labels["instance"] = "shop";
    Json template_metadata = {{"labels", pods_labels}, {"annotations", annotations()}};
    if (together_ && number > 1 && rng_.chance(60)) template_metadata["annotations"][surge_annotation] = "false";
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
    const std::uint64_t of_older = older_set(one);
    const Json pod_template = one.below["spec"]["template"];
    obstacle(one);
    world_.objects.push_back(one.above);
    world_.objects.push_back(one.below);
    pods(one, pod_template, one.replicas - of_older);
    if (!together_ && rng_.chance(75)) budget(one.ns, one.app, {{"app", one.app}});
    if (options_.other_people) people(one);
  }

  // A rollout is in progress: some pods are still those of the ReplicaSet before. Returns how many.
  std::uint64_t older_set(Rolled& one) {
    if (one.replicas < 2 || !rng_.chance(20)) return 0;
    tell("rollout");
    const std::uint64_t count = pick(1, one.replicas - 1);
    Rolled older = one;
    older.hash = "5b" + one.hash.substr(2);
    older.set = one.older = one.app + "-" + older.hash;
    older.below["metadata"]["name"] = older.set;
    older.below["metadata"]["uid"] = "uid-of-" + older.set;
    older.below["spec"]["replicas"] = count;
    for (const char* labels : {"/spec/selector/matchLabels", "/spec/template/metadata/labels"})
      older.below[Json::json_pointer(labels)][hash_label] = older.hash;
    one.below["spec"]["replicas"] = one.replicas - count;
    world_.objects.push_back(older.below);
    pods(older, older.below["spec"]["template"], count);
    return count;
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
    static const Json most[] = {nullptr, nullptr, 1, 1, "25%", "100%", 0};
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
    const bool missing = rng_.chance(20);
    tell(missing ? "claim-missing" : "claim-" + std::string(mode));
    for (Json* object : {&one.above, &one.below})
      (*object)["spec"]["template"]["spec"]["volumes"] = {
          {{"name", "files"}, {"persistentVolumeClaim", {{"claimName", claim}}}}};
    if (missing) return;
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

  void pods(const Rolled& one, const Json& of_template, std::uint64_t count) {
    const Left left = something_left(one);
    const bool costly = rng_.chance(15), doubled_up = rng_.chance(15);
    const bool degraded = count > 1 && rng_.chance(15);
    if (costly) tell("deletion-cost");
    if (degraded) tell("degraded");
    for (std::uint64_t i = 0; i < count; ++i) {
      Json metadata = of_template["metadata"];
      metadata["name"] = fmt::format("{}-{}", one.set, i);
      metadata["namespace"] = one.ns;
      metadata["creationTimestamp"] = created;
      if (costly && rng_.chance(50))
        metadata["annotations"][deletion_cost] = fmt::format("{}", static_cast<int>(pick(0, 10)) - 5);
      const Left mine = i == 0 ? left : Left::nothing;
      const bool sick = degraded && i + 1 == count;
      const bool here =
          mine == Left::nothing ? !sick && (rng_.chance(60) || (together_ && i == 0)) : mine != Left::surged_elsewhere;
      Json spec = of_template["spec"];
      spec["nodeName"] = here                                          ? world_.node
                         : doubled_up || sick || mine != Left::nothing ? nodes_.back()
                                                                       : nodes_[pick(0, nodes_.size() - 1)];
      if (is_owned(mine)) put_below(metadata, "ReplicaSet", one.set);
      if (mine != Left::nothing) leave(one, mine, metadata, spec["nodeName"]);
      const bool ready = mine != Left::nothing || !(sick || rng_.chance(8));
      const char* status = ready ? "True" : "False";
      world_.objects.push_back(
          {{"kind", "Pod"},
           {"metadata", metadata},
           {"spec", spec},
           {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", status}}}}}}});
      if (!ready) recovers(one.ns, metadata["name"]);
    }
  }

  // A drain with guards waits for pods that are not Ready.
  void recovers(const std::string& ns, const std::string& name) {
    heal("pod recovered",
         [ns, name, ready = Json::array({{{"type", "Ready"}, {"status", "True"}}})](TestCluster& cluster) {
           const Json pod = cluster.get("pods", ns, name);
           if (!pod.is_null() && !terminating(pod))
             cluster.patch("pods", ns, name, {{"status", {{"conditions", ready}}}});
         });
  }

  Left something_left(const Rolled& one) {
    if (!rng_.chance(25)) return Left::nothing;
    static constexpr std::pair<Left, const char*> kinds[] = {
        {Left::surged, "left-over"},          {Left::surged, "left-over"},
        {Left::relabelled, "left-half-back"}, {Left::surged_elsewhere, "left-elsewhere"},
        {Left::foreign, "foreign-mark"},      {Left::copied, "copied-mark"},
        {Left::garbage, "garbage-mark"},      {Left::orphaned, "left-orphan"}};
    const auto [left, name] = kinds[pick(0, std::size(kinds) - 1)];
    // The pods of the older ReplicaSet have the ordinary marks only.
    const bool plain = left == Left::surged || left == Left::relabelled;
    if (!plain && (!one.older.empty() || (left == Left::foreign && !options_.unmanaged_pods))) return Left::nothing;
    tell(name);
    return left;
  }
  static bool is_owned(Left left) {
    return left == Left::nothing || left == Left::relabelled || left == Left::copied || left == Left::garbage;
  }

  void leave(const Rolled& one, Left left, Json& metadata, const std::string& node) {
    const bool here = left != Left::foreign && left != Left::copied;
    if (!is_owned(left)) metadata["labels"].erase(hash_label);
    const std::string owner = left == Left::orphaned ? one.app + "-gone" : one.set;
    const Json mark = {{"run", "earlier"},
                       {"by", "drain on laptop"},
                       {"at", "2026-01-01T00:00:00Z"},
                       {"node", here ? node : "another-node"},
                       {"hash", left == Left::orphaned ? "gone" : one.hash},
                       {"owner", owner},
                       {"ownerUid", "uid-of-" + owner},
                       {"deployment", one.app},
                       {"deploymentUid", "uid-of-" + one.app},
                       {"ready", pick(1, one.replicas)}};
    metadata["annotations"][mark_annotation] = left == Left::garbage ? "{\"run\":\"a\nb\"" : mark.dump();
  }

  void budget(const std::string& ns, const std::string& name, const Json& labels) {
    static const Json kinds[] = {{{"minAvailable", 1}},   {{"minAvailable", "50%"}},  {{"minAvailable", "100%"}},
                                 {{"maxUnavailable", 0}}, {{"maxUnavailable", "0%"}}, {{"maxUnavailable", 1}}};
    // The disruption controller computes the demand of a budget from the replicas of its Deployments, unless the demand
    // is a number of pods.
    Json spec = kinds[pick(together_ ? 2 : 0, std::size(kinds) - 1)];
    spec["selector"] = {{"matchLabels", labels}};
    if (together_) tell("budget-of-several");
    world_.objects.push_back(
        {{"kind", "PodDisruptionBudget"}, {"metadata", {{"name", name}, {"namespace", ns}}}, {"spec", spec}});
    heal("budget of a Deployment opened", [ns, name](TestCluster& cluster) {
      cluster.patch(
          "poddisruptionbudgets", ns, name,
          {{"spec",
            {{"minAvailable", 0}, {"maxUnavailable", nullptr}, {"unhealthyPodEvictionPolicy", "AlwaysAllow"}}}});
    });
  }

  void webhook(const std::string& ns) {
    const bool restores_label = rng_.chance(50);
    tell(restores_label ? "webhook-restores-label" : "webhook-drops-mark");
    const auto active = std::make_shared<bool>(true);
    world_.incidents.push_back({Duration::zero(), "a webhook for pods", [=](TestCluster& cluster) {
                                  cluster.server().intercept([=, &cluster](const Call& call, const AuditEntry&) {
                                    return *active ? half_released(cluster, call, ns, restores_label) : std::nullopt;
                                  });
                                }});
    heal("webhook for pods removed", [active](TestCluster&) { *active = false; });
  }

  void people(const Rolled& one) {
    const std::string ns = one.ns, app = one.app;
    if (rng_.chance(12))
      incident("namespace annotated", [ns, value = rng_.chance(50) ? "true" : "false"](TestCluster& cluster) {
        cluster.patch("namespaces", "", ns, {{"metadata", {{"annotations", {{surge_annotation, value}}}}}});
      });
    // The simulation does not scale a Deployment during a rollout.
    if (one.older.empty() && rng_.chance(30)) {
      tell("scaled");
      const std::uint64_t wanted = rng_.chance(10) ? 0 : pick(1, 6);
      incident("Deployment scaled", [ns, app, wanted](TestCluster& cluster) {
        cluster.patch("deployments", ns, app, {{"spec", {{"replicas", wanted}}}});
      });
    }
    if (rng_.chance(8)) {
      tell("deleted");
      incident("Deployment deleted", [ns, app](TestCluster& cluster) { delete_deployment(cluster, ns, app); });
    }
    if (!one.older.empty() && rng_.chance(30)) {
      tell("old-set-deleted");
      // The Deployment controller then lets the newer one have all replicas.
      incident("old ReplicaSet deleted",
               [ns, older = one.older, set = one.set, all = one.replicas](TestCluster& cluster) {
                 delete_set(cluster, ns, older);
                 cluster.patch("replicasets", ns, set, {{"spec", {{"replicas", all}}}});
               });
    }
    if (rng_.chance(12)) {
      tell("annotator");
      const Duration when = world_.moment(rng_, seconds(100));
      world_.incidents.push_back({when, "a client annotates released pods", Annotator{ns}});
      world_.healed_after = std::max(world_.healed_after, when + Duration(seconds(60)));
    }
    if (!rng_.chance(12)) return;
    tell("label-given-back");
    incident("label given back", [ns, app](TestCluster& cluster) {
      for (const Json& pod : pods_of(cluster, ns, app)) {
        const Json mark = Json::parse(annotation(pod, mark_annotation), nullptr, false);
        const std::string hash = mark.is_object() ? text(mark, "/hash") : "";
        if (!hash.empty()) cluster.patch("pods", ns, name_of(pod), {{"metadata", {{"labels", {{hash_label, hash}}}}}});
      }
    });
  }

  GeneratedWorld& world_;
  const GeneratorOptions& options_;
  SeededRng rng_;
  std::vector<std::string> nodes_;
  bool together_ = false;  // one budget selects the pods of all Deployments of the namespace
};

}  // namespace

void add_surges(GeneratedWorld& world, const GeneratorOptions& options) {
  Surges(world, options).add();
}

}  // namespace haulout::sim
