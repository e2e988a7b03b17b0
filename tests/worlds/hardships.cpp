#include "tests/worlds/hardships.hpp"

#include <fmt/format.h>

#include <memory>

#include "sim/status_bodies.hpp"

namespace haulout::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Time between two tries of a driver to detach (sim/volumes.cpp), and additional time that the controllers need.
constexpr Duration between_tries = seconds(5);
constexpr Duration controllers_take = seconds(5);

class Hardships {
 public:
  Hardships(GeneratedWorld& world, const GeneratorOptions& options)
      : world_(world),
        options_(options),
        rng_(world.seed * 0x9e3779b97f4a7c15u + 2),
        turns_rng_(world.seed * 0x9e3779b97f4a7c15u + 3) {}

  void add() {
    if (rng_.chance(60)) volumes();
    if (options_.generation >= 5) slow_to_attach();
    if (!options_.other_people) return;
    if (rng_.chance(20)) dying_namespace();
    if (rng_.chance(40)) people_move_pods();
    if (rng_.chance(25)) webhook();
    if (options_.generation >= 3 && options_.faults && rng_.chance(30)) older_cache();
  }

 private:
  Duration moment(seconds latest) { return world_.moment(rng_, latest); }
  void incident(Duration after, std::string what, std::function<void(TestCluster&)> act) {
    world_.incidents.push_back({after, std::move(what), std::move(act)});
  }

  // -- Volumes
  void volumes() {
    std::vector<Json*> alone, workloads;
    for (Json& object : world_.objects) {
      const std::string kind = text(object, "/kind");
      const bool mirror = !annotation(object, "kubernetes.io/config.mirror").empty();
      const bool has_volume = kind == "Pod" && !mirror && rng_.chance(20);
      const bool one_more = options_.generation >= 4 && kind == "Pod" && !mirror && turns_rng_.chance(25);
      if (has_volume || one_more) alone.push_back(&object);
      if ((kind == "ReplicaSet" || kind == "StatefulSet") && rng_.chance(15)) workloads.push_back(&object);
    }
    std::vector<Json> made;
    for (Json* pod : alone) {
      const std::string claim = "data-" + name_of(*pod);
      mount((*pod)["spec"], claim);
      volume(made, ns_of(*pod), claim, "ReadWriteOnce");
    }
    for (Json* workload : workloads) share(*workload, "shared-", "ReadWriteMany", made);
    if (rng_.chance(20))
      made.push_back({{"kind", "CSIDriver"},
                      {"metadata", {{"name", "csi.example.com"}}},
                      {"spec", {{"attachRequired", rng_.chance(50)}}}});
    for (Json& object : made) world_.objects.push_back(std::move(object));
  }

  // Makes attaching slow, and gives more workloads volumes. Their pods need the same volume on another node and must
  // wait for it.
  void slow_to_attach() {
    SeededRng rng(world_.seed * 0x9e3779b97f4a7c15u + 5);
    if (rng.chance(70)) world_.timing.attach = rng.between(Duration(milliseconds(100)), Duration(seconds(150)));
    std::vector<Json*> wanted;
    for (Json& object : world_.objects) {
      const std::string kind = text(object, "/kind");
      if ((kind == "ReplicaSet" || kind == "StatefulSet") && rng.chance(40)) wanted.push_back(&object);
    }
    std::vector<Json> made;
    for (Json* workload : wanted)
      share(*workload, "own-", number(*workload, "/spec/replicas") == 1 ? "ReadWriteOnce" : "ReadWriteMany", made);
    for (Json& object : made) world_.objects.push_back(std::move(object));
  }

  static void mount(Json& spec, const std::string& claim) {
    Json volume = {{"name", claim}, {"persistentVolumeClaim", {{"claimName", claim}}}};
    if (!spec.contains("volumes")) spec["volumes"] = Json::array();
    spec["volumes"].push_back(std::move(volume));
  }

  // Adds one volume for all pods of a workload, also for pods that are created later.
  void share(Json& workload, const char* prefix, const char* mode, std::vector<Json>& made) {
    const std::string app = text(workload, "/spec/selector/matchLabels/app"), ns = ns_of(workload);
    const std::string claim = prefix + app;
    for (Json& object : world_.objects) {
      if (ns_of(object) != ns) continue;
      if (text(object, "/kind") == "Pod" && text(object, "/metadata/labels/app") == app) mount(object["spec"], claim);
      if (text(object, "/spec/selector/matchLabels/app") == app && object["spec"].contains("template"))
        mount(object["spec"]["template"]["spec"], claim);
    }
    volume(made, ns, claim, mode);
  }

  void volume(std::vector<Json>& made, const std::string& ns, const std::string& claim, const char* mode) {
    const std::string name = fmt::format("pv-{}-{}", ns, claim);
    const Duration takes = rng_.between(Duration(milliseconds(10)), Duration(seconds(40)));
    const Duration fails =
        rng_.chance(25) ? rng_.between(Duration(seconds(1)), Duration(seconds(40))) : Duration::zero();
    world_.detach_takes = std::max(world_.detach_takes, takes + fails + between_tries + controllers_take);
    const bool other_driver = options_.generation >= 4 && turns_rng_.chance(30);
    const char* driver = other_driver ? "disks.example.com" : "csi.example.com";
    Json annotations = {{"sim.haulout.dev/detaches-after", in_milliseconds(takes)}};
    if (fails > Duration::zero()) annotations["sim.haulout.dev/detach-fails-for"] = in_milliseconds(fails);
    made.push_back({{"kind", "PersistentVolume"},
                    {"metadata", {{"name", name}, {"annotations", std::move(annotations)}}},
                    {"spec",
                     {{"accessModes", {mode}},
                      {"csi", {{"driver", driver}, {"volumeHandle", "handle-" + name}}},
                      {"claimRef", {{"kind", "PersistentVolumeClaim"}, {"namespace", ns}, {"name", claim}}}}}});
    made.push_back({{"kind", "PersistentVolumeClaim"},
                    {"metadata", {{"name", claim}, {"namespace", ns}}},
                    {"spec", {{"accessModes", {mode}}, {"volumeName", name}}}});
  }
  static std::string in_milliseconds(Duration duration) {
    return fmt::format("{}ms", std::chrono::duration_cast<milliseconds>(duration).count());
  }

  // -- The server
  // Another API server takes over. Its watch cache is behind the storage; its lists are up to date because they read
  // the storage.
  void older_cache() {
    const Duration when = moment(seconds(100)), down = rng_.between(Duration(milliseconds(100)), Duration(seconds(10))),
                   lag = rng_.between(Duration(milliseconds(100)), Duration(seconds(20)));
    world_.healed_after = std::max(world_.healed_after, when + down + lag);
    incident(when, "restart with an older cache", [down, lag](TestCluster& cluster) {
      cluster.restart(down);
      cluster.after(down, [&cluster, lag] { cluster.lag_watches(lag); });
    });
  }

  // -- People
  void dying_namespace() {
    const std::string ns = fmt::format("team-{}", rng_.between(std::uint64_t{1}, std::uint64_t{3}));
    incident(moment(seconds(60)), "namespace deleted", [ns](TestCluster& cluster) { cluster.terminate_namespace(ns); });
  }

  // Moves bare pods: deletes a pod and creates it under the same name on n1 or n2. The new instance has not been
  // evicted yet.
  void people_move_pods() {
    for (const Json& object : world_.objects) {
      if (text(object, "/kind") != "Pod" || !at(object, "/metadata/ownerReferences").is_null() || !rng_.chance(15))
        continue;
      if (!annotation(object, "kubernetes.io/config.mirror").empty()) continue;
      Json moved = object;
      moved["metadata"].erase("finalizers");
      moved["spec"]["nodeName"] = rng_.chance(30) ? "n1" : "n2";
      incident(moment(seconds(60)), "pod moved", [moved](TestCluster& cluster) {
        // Does not recreate a pod that is already deleted or whose namespace is terminating.
        const Json there = cluster.get("pods", ns_of(moved), name_of(moved));
        if (there.is_null() || terminating(cluster.get("namespaces", "", ns_of(moved)))) return;
        cluster.remove("pods", ns_of(moved), name_of(moved));
        cluster.create("pods", moved);
      });
    }
  }

  // Adds a webhook that denies the evictions of one namespace, or cannot be reached, for a while.
  void webhook() {
    const std::string ns = fmt::format("team-{}", rng_.between(std::uint64_t{1}, std::uint64_t{3}));
    const bool denies = rng_.chance(50);
    const auto active = std::make_shared<bool>(false);
    const http::Response answer = denies ? denied() : unreachable();
    const Duration from = rng_.between(Duration::zero(), Duration(seconds(40)));
    const Duration until = from + rng_.between(Duration(seconds(1)), Duration(seconds(60)));
    world_.healed_after = std::max(world_.healed_after, until);
    world_.webhook_ns = ns;
    incident(from, denies ? "webhook denies" : "webhook is down", [ns, active, answer](TestCluster& cluster) {
      *active = true;
      cluster.server().intercept([ns, active, answer](const Call& call, const AuditEntry&) {
        const bool asked = *active && call.verb == "create" && call.subresource == "eviction" && call.ns == ns;
        return asked ? std::optional(answer) : std::nullopt;
      });
    });
    incident(until, "webhook is well", [active](TestCluster&) { *active = false; });
  }
  static http::Response denied() {
    StatusBody body;
    body.code = 400;
    body.message = "admission webhook \"evictions.example.com\" denied the request: not now";
    return body.response();
  }
  static http::Response unreachable() {
    StatusBody body;
    body.code = 500;
    body.reason = "InternalError";
    body.message =
        "Internal error occurred: failed calling webhook \"evictions.example.com\": failed to call webhook: Post "
        "\"https://evictions.example.svc:443/\": dial tcp 10.96.7.7:443: connect: connection refused";
    body.causes = {{"", "failed calling webhook \"evictions.example.com\"", ""}};
    return body.response();
  }

  GeneratedWorld& world_;
  const GeneratorOptions& options_;
  SeededRng rng_, turns_rng_;
};

}  // namespace

void add_hardships(GeneratedWorld& world, const GeneratorOptions& options) {
  Hardships(world, options).add();
}

}  // namespace haulout::sim
