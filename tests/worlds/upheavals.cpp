#include "tests/worlds/upheavals.hpp"

#include <fmt/format.h>

namespace haulout::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Upheavals {
 public:
  Upheavals(GeneratedWorld& world, const GeneratorOptions& options)
      : world_(world), options_(options), rng_(world.seed * 0x9e3779b97f4a7c15u + 7) {}

  void add() {
    if (rng_.chance(60)) make_room();
    kinds_of_workloads();
    if (rng_.chance(25)) left_by_a_daemon_set();
    choose_own_pod();
    unready_pods_recover();
    if (options_.other_people) {
      if (rng_.chance(12)) node_not_ready();
      if (rng_.chance(6)) node_goes();
    }
    if (!options_.faults) return;
    if (rng_.chance(20)) rights();
    wire();
  }

 private:
  std::uint64_t pick(std::uint64_t low, std::uint64_t high) { return rng_.between(low, high); }
  Duration moment(seconds latest) { return world_.moment(rng_, latest); }
  void incident(Duration after, std::string what, std::function<void(TestCluster&)> act) {
    world_.incidents.push_back({after, std::move(what), std::move(act)});
  }

  void heal(Duration after, std::string what, std::function<void(TestCluster&)> act) {
    world_.incidents.push_back({after, std::move(what), std::move(act), true});
  }

  // -- What there is
  void make_room() {
    world_.roomy = true;
    for (Json& object : world_.objects)
      if (text(object, "/kind") == "Node")
        object["status"]["allocatable"] = {{"cpu", "64"}, {"memory", "256Gi"}, {"pods", "500"}};
  }

  void kinds_of_workloads() {
    for (std::size_t i = 0; i < world_.objects.size(); ++i) {
      const std::string kind = text(world_.objects[i], "/kind");
      if (kind != "ReplicaSet" && kind != "StatefulSet") continue;
      const std::string ns = ns_of(world_.objects[i]), name = name_of(world_.objects[i]);
      const std::string app = text(world_.objects[i], "/spec/selector/matchLabels/app");
      if (rng_.chance(10)) each_pod(ns, app, make_critical);
      if (rng_.chance(12))
        each_pod(ns, app, [order = fmt::format("{}", static_cast<int>(pick(0, 4)) - 2)](Json& pod) {
          pod["metadata"]["annotations"]["haulout.dev/drain-order"] = order;
        });
      if (!options_.other_people || !rng_.chance(6)) continue;
      each_pod(ns, app, [this](Json& pod) { make_tolerant(pod); });
      // The controller recreates these pods on the cordoned node until this incident removes the workload.
      heal(seconds(20) + moment(seconds(60)), "tolerant workload removed",
           [resource = std::string(find_kind(kind)->resource), ns, name, app](TestCluster& cluster) {
             // A Deployment without its ReplicaSet would create another one when its controller runs again.
             for (const Json& above : cluster.all("deployments"))
               if (ns_of(above) == ns && text(above, "/spec/selector/matchLabels/app") == app)
                 cluster.remove("deployments", ns, name_of(above));
             cluster.remove(resource, ns, name);
             for (const Json& pod : cluster.all("pods"))
               if (ns_of(pod) == ns && text(pod, "/metadata/labels/app") == app)
                 cluster.delete_gracefully("pods", ns, name_of(pod));
           });
      world_.healed_after += seconds(20);
    }
  }

  // Changes the pods that exist, and the templates for later ones.
  void each_pod(const std::string& ns, const std::string& app, const std::function<void(Json&)>& change) {
    for (Json& object : world_.objects) {
      if (ns_of(object) != ns) continue;
      if (text(object, "/kind") == "Pod" && text(object, "/metadata/labels/app") == app) change(object);
      if (text(object, "/spec/selector/matchLabels/app") == app && object["spec"].contains("template"))
        change(object["spec"]["template"]);
    }
  }
  static void make_critical(Json& pod) {
    pod["spec"]["priorityClassName"] = "system-cluster-critical";
    pod["spec"]["priority"] = 2'000'000'000;
  }
  void make_tolerant(Json& pod) {
    pod["spec"]["tolerations"] = {
        {{"key", "node.kubernetes.io/unschedulable"}, {"operator", "Exists"}, {"effect", "NoSchedule"}}};
    if (tolerant_stay_) pod["metadata"]["annotations"]["sim.haulout.dev/prefers-node"] = world_.node;
  }

  void left_by_a_daemon_set() {
    Json metadata = {{"name", "left-behind"}, {"namespace", "kube-system"}, {"labels", {{"app", "left-behind"}}}};
    metadata["ownerReferences"] = {{{"apiVersion", "apps/v1"},
                                    {"kind", "DaemonSet"},
                                    {"name", rng_.chance(50) ? "agent" : "old-agent"},
                                    {"uid", "uid-of-a-daemon-set-that-is-gone"},
                                    {"controller", true}}};
    const Json spec = {{"nodeName", world_.node},
                       {"terminationGracePeriodSeconds", pick(0, 30)},
                       {"containers", {{{"name", "app"}, {"image", "example.com/app:1"}}}}};
    const Json status = {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
    world_.objects.push_back({{"kind", "Pod"}, {"metadata", metadata}, {"spec", spec}, {"status", status}});
  }

  void choose_own_pod() {
    for (Json& object : world_.objects) {
      const bool here = text(object, "/kind") == "Pod" && text(object, "/spec/nodeName") == world_.node;
      const Json& owners = at(object, "/metadata/ownerReferences");
      const bool managed = owners.is_array() && text(owners.front(), "/kind") == "ReplicaSet";
      if (!here || !managed || !rng_.chance(30)) continue;
      world_.own_pod_uid = "uid-of-the-drains-own-pod";
      object["metadata"]["uid"] = world_.own_pod_uid;
      return;
    }
  }

  // Pods with a controller that are not Ready become Ready in the end. A drain with guards would wait for that, too.
  void unready_pods_recover() {
    for (const Json& object : world_.objects) {
      if (text(object, "/kind") != "Pod" || at(object, "/metadata/ownerReferences").is_null()) continue;
      if (text(condition(object, "Ready"), "/status") != "False") continue;
      heal(moment(seconds(60)), "pod recovered",
           [ns = ns_of(object), name = name_of(object), conditions = ready()](TestCluster& cluster) {
             const Json pod = cluster.get("pods", ns, name);
             if (!pod.is_null() && !terminating(pod))
               cluster.patch("pods", ns, name, {{"status", {{"conditions", conditions}}}});
           });
    }
  }
  static Json ready() { return Json::array({{{"type", "Ready"}, {"status", "True"}}}); }

  // -- The node
  void node_not_ready() {
    const Duration down = moment(seconds(60)), up = down + rng_.between(Duration(seconds(1)), Duration(seconds(60)));
    world_.healed_after = std::max(world_.healed_after, up);
    incident(down, "kubelet stopped: NotReady",
             [node = world_.node](TestCluster& cluster) { cluster.node_down(node); });
    heal(up, "kubelet started: Ready", [node = world_.node](TestCluster& cluster) { cluster.node_up(node); });
  }

  void node_goes() {
    world_.node_goes = true;
    const Duration when = moment(seconds(90));
    if (rng_.chance(50))
      incident(when, "node replaced", [node = world_.node](TestCluster& cluster) { cluster.replace_node(node); });
    else
      incident(when, "node deleted", [node = world_.node](TestCluster& cluster) { cluster.remove("nodes", "", node); });
  }

  // -- The server
  void rights() {
    static constexpr std::pair<const char*, const char*> some[] = {{"create", "pods/eviction"},
                                                                   {"delete", "pods"},
                                                                   {"watch", "pods"},
                                                                   {"watch", "nodes"},
                                                                   {"watch", "poddisruptionbudgets"},
                                                                   {"list", "poddisruptionbudgets"},
                                                                   {"watch", "volumeattachments"},
                                                                   {"get", "replicasets"}};
    world_.rights_change = true;
    for (std::uint64_t i = pick(1, 3); i > 0; --i) {
      const auto [verb, resource] = some[pick(0, std::size(some) - 1)];
      const Duration from = rng_.between(Duration::zero(), Duration(seconds(60)));
      const Duration until = from + rng_.between(Duration(seconds(1)), Duration(seconds(40)));
      world_.healed_after = std::max(world_.healed_after, until);
      incident(from, fmt::format("may not {} {}", verb, resource),
               [verb, resource](TestCluster& cluster) { cluster.forbid(verb, resource); });
      incident(until, fmt::format("may {} {} again", verb, resource),
               [verb, resource](TestCluster& cluster) { cluster.permit(verb, resource); });
    }
  }

  void wire() {
    for (std::uint64_t i = pick(0, 2); i > 0; --i) world_.faults.push_back(passing());
    if (!rng_.chance(6)) return;
    world_.hopeless_answers = true;
    static constexpr int codes[] = {403, 413, 501, 302};
    FaultRule rule = at_times();
    rule.fault.code = codes[pick(0, std::size(codes) - 1)];
    rule.fault.kind = rule.fault.code == 302 ? FaultKind::redirect : FaultKind::server_error;
    world_.faults.push_back(std::move(rule));
  }

  FaultRule at_times() {
    FaultRule rule;
    rule.percent = static_cast<unsigned>(pick(1, 20));
    rule.until = TimePoint{} + moment(seconds(120));
    return rule;
  }

  // A transient fault: a client should retry.
  FaultRule passing() {
    FaultRule rule = at_times();
    rule.fault.kind = FaultKind::server_error;
    rule.fault.after_pieces = pick(0, 5);
    switch (pick(0, 7)) {
      case 0: rule.fault.code = 401; break;
      case 1: rule.fault.code = 408; break;
      case 2: rule.fault.code = 429; break;
      case 3: rule.fault.code = 502, rule.fault.proxy = rng_.chance(70); break;
      case 4: rule.fault.code = 410, rule.verb = "watch"; break;
      case 5: rule.fault.kind = FaultKind::garbage; break;
      case 6: throttle_for(rule, fmt::format("{}", pick(2, 20)), seconds(20)); break;
      default: throttle_for(rule, "", seconds(0));
    }
    return rule;
  }

  // Makes the fault a 429 whose Retry-After is `told`, a number of seconds. If `told` is empty, Retry-After is the date
  // at which the fault ends. Clients may obey the last such answer until `at_most` after the end of the fault.
  void throttle_for(FaultRule& rule, std::string told, seconds at_most) {
    rule.fault.kind = FaultKind::throttle;
    world_.healed_after = std::max(world_.healed_after, Duration(rule.until - TimePoint{}) + at_most);
    const auto until = std::chrono::ceil<seconds>(rule.until - TimePoint{});
    if (told.empty()) {
      // The virtual clock starts at the beginning of 2026, a Thursday.
      told = fmt::format("Thu, 01 Jan 2026 00:{:02}:{:02} GMT", until.count() / 60, until.count() % 60);
    }
    rule.fault.retry_after = std::move(told);
  }

  GeneratedWorld& world_;
  const GeneratorOptions& options_;
  SeededRng rng_;
  bool tolerant_stay_ = rng_.chance(40);
};

}  // namespace

void add_upheavals(GeneratedWorld& world, const GeneratorOptions& options) {
  Upheavals(world, options).add();
}

}  // namespace haulout::sim
