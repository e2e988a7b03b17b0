#include "tests/worlds/world_generator.hpp"

#include <fmt/format.h>

#include "tests/worlds/adversities.hpp"
#include "tests/worlds/gangs.hpp"
#include "tests/worlds/hardships.hpp"
#include "tests/worlds/latecomers.hpp"
#include "tests/worlds/migrations.hpp"
#include "tests/worlds/oddities.hpp"
#include "tests/worlds/responders.hpp"
#include "tests/worlds/surges.hpp"
#include "tests/worlds/upheavals.hpp"
#include "tests/worlds/work.hpp"

namespace haulout::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Generator {
 public:
  Generator(std::uint64_t seed, GeneratorOptions options) : rng_(seed), options_(options) { world_.seed = seed; }

  GeneratedWorld run() {
    world_.timing.pod_start = rng_.between(milliseconds(200), seconds(8));
    world_.timing.controller_lag = rng_.between(milliseconds(5), milliseconds(800));
    world_.timing.scheduler_lag = rng_.between(milliseconds(5), seconds(1));
    world_.timing.disruption_lag = rng_.between(milliseconds(5), milliseconds(200));
    nodes();
    left_ = static_cast<std::size_t>(pick(1, options_.most_pods));
    while (left_ > 0) application();
    if (rng_.chance(60)) add("DaemonSet", meta("kube-system", "agent"), daemon_spec());
    if (rng_.chance(50)) mirror();
    if (options_.other_people) people();
    if (options_.faults) misfortune();
    if (options_.generation >= 2) add_hardships(world_, options_);
    if (options_.generation >= 6) add_upheavals(world_, options_);
    if (options_.generation >= 7) add_adversities(world_, options_);
    if (options_.generation >= 8) add_migrations(world_);
    if (options_.generation >= 8) add_oddities(world_, options_);
    if (options_.generation >= 9) add_work(world_);
    if (options_.generation >= 10) add_surges(world_, options_);
    if (options_.generation >= 11) add_gangs(world_, options_);
    if (options_.generation >= 12) add_responders(world_);
    if (options_.generation >= 13) add_latecomers(world_);
    return std::move(world_);
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

  static Json meta(const std::string& ns, const std::string& name) {
    Json result = {{"name", name}};
    if (!ns.empty()) result["namespace"] = ns;
    return result;
  }
  void add(const char* kind, Json metadata, Json spec, Json status = Json()) {
    Json object = {{"kind", kind}, {"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
    if (!status.is_null()) object["status"] = std::move(status);
    world_.objects.push_back(std::move(object));
  }

  void nodes() {
    node_count_ = pick(2, 6);
    world_.node = "n1";
    for (std::uint64_t i = 1; i <= node_count_; ++i) {
      Json metadata = meta("", fmt::format("n{}", i));
      metadata["labels"] = {{"kubernetes.io/hostname", metadata["name"]}};
      add("Node", metadata, Json::object(), {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}});
    }
  }

  // Puts at least half of the pods, on average, on the node that will be drained.
  std::string some_node() { return rng_.chance(50) ? "n1" : fmt::format("n{}", pick(1, node_count_)); }

  Json pod_spec() {
    static constexpr std::int64_t graces[] = {0, 1, 2, 5, 10, 30, 60, 300};
    Json spec = {{"terminationGracePeriodSeconds", graces[pick(0, std::size(graces) - 1)]},
                 {"containers", {{{"name", "app"}, {"image", "example.com/app:1"}}}}};
    if (rng_.chance(20)) spec["priority"] = pick(0, 2) * 1000;
    if (rng_.chance(15)) spec["volumes"] = {{{"name", "scratch"}, {"emptyDir", Json::object()}}};
    return spec;
  }

  Json annotations() {
    Json result = Json::object();
    if (rng_.chance(60)) result["sim.haulout.dev/terminates-after"] = fmt::format("{}ms", pick(10, 40'000));
    if (rng_.chance(30)) result["sim.haulout.dev/starts-after"] = fmt::format("{}ms", pick(100, 15'000));
    return result;
  }

  static Json running(bool ready) {
    return {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", ready ? "True" : "False"}}}}};
  }

  Json daemon_spec() {
    return {{"selector", {{"matchLabels", {{"app", "agent"}}}}},
            {"template", {{"metadata", {{"labels", {{"app", "agent"}}}}}, {"spec", pod_spec()}}}};
  }

  void application() {
    const std::string ns = fmt::format("team-{}", pick(1, 3));
    const std::string app = fmt::format("app{}", ++apps_);
    const auto replicas = std::min<std::uint64_t>(left_, pick(1, 8));
    left_ -= replicas;
    const std::uint64_t kind = pick(0, options_.unmanaged_pods ? 4 : 2);
    if (kind <= 2)
      managed(ns, app, replicas, kind == 2);
    else
      unmanaged(ns, app, replicas, kind == 4);
    if (kind <= 3 && rng_.chance(60)) budgets(ns, app, replicas, kind <= 2);
  }

  void managed(const std::string& ns, const std::string& app, std::uint64_t replicas, bool stateful) {
    const Json labels = {{"app", app}};
    const Json of_template = {{"metadata", {{"labels", labels}, {"annotations", annotations()}}}, {"spec", pod_spec()}};
    Json spec = {{"replicas", replicas}, {"selector", {{"matchLabels", labels}}}, {"template", of_template}};
    if (stateful && rng_.chance(50)) spec["podManagementPolicy"] = "Parallel";
    Json metadata = meta(ns, stateful ? app : app + "-6d4b9");
    metadata["uid"] = "uid-" + app;
    if (!stateful && rng_.chance(50)) {
      Json above = meta(ns, app);
      above["uid"] = "uid-deployment-" + app;
      add("Deployment", above, spec);
      metadata["ownerReferences"] = Json::array({owner("Deployment", app, above["uid"])});
    }
    const char* kind = stateful ? "StatefulSet" : "ReplicaSet";
    add(kind, metadata, spec);
    for (std::uint64_t i = 0; i < replicas; ++i) {
      Json pod = of_template["metadata"];
      pod["name"] = stateful ? fmt::format("{}-{}", app, i) : fmt::format("{}-6d4b9-{:05}", app, i);
      pod["namespace"] = ns;
      pod["ownerReferences"] = Json::array({owner(kind, metadata["name"], metadata["uid"])});
      finalizer(pod);
      Json pod_spec_here = of_template["spec"];
      pod_spec_here["nodeName"] = some_node();
      add("Pod", pod, pod_spec_here, running(stateful || !rng_.chance(5)));
    }
  }

  static Json owner(const std::string& kind, const Json& name, const Json& uid) {
    return {{"apiVersion", "apps/v1"}, {"kind", kind}, {"name", name}, {"uid", uid}, {"controller", true}};
  }

  void unmanaged(const std::string& ns, const std::string& app, std::uint64_t count, bool finished) {
    for (std::uint64_t i = 0; i < count; ++i) {
      Json metadata = meta(ns, fmt::format("{}-{}", app, i));
      metadata["labels"] = {{"app", app}};
      metadata["annotations"] = annotations();
      finalizer(metadata);
      Json spec = pod_spec();
      spec["nodeName"] = some_node();
      const Json done = {{"phase", rng_.chance(70) ? "Succeeded" : "Failed"}};
      add("Pod", metadata, spec, finished ? done : running(!rng_.chance(10)));
    }
  }

  void finalizer(Json& metadata) {
    if (!rng_.chance(4)) return;
    metadata["finalizers"] = {"example.com/hold"};
    heal(moment(seconds(120)), "finalizer removed",
         [ns = metadata["namespace"].get<std::string>(), name = metadata["name"].get<std::string>()](
             TestCluster& cluster) { cluster.patch("pods", ns, name, {{"metadata", {{"finalizers", nullptr}}}}); });
  }

  // Adds a budget, which may be exhausted from the start. A later incident removes it or lets it allow all disruptions.
  void budgets(const std::string& ns, const std::string& app, std::uint64_t replicas, bool managed) {
    Json spec = {{"selector", {{"matchLabels", {{"app", app}}}}}};
    if (rng_.chance(20)) spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow";
    const bool closed = replicas < 2 || !managed || rng_.chance(25);
    if (closed)
      spec["minAvailable"] = replicas;
    else if (rng_.chance(40))
      spec["maxUnavailable"] = pick(1, replicas);
    else if (rng_.chance(50))
      spec["minAvailable"] = replicas - pick(1, replicas);
    else
      spec["maxUnavailable"] = fmt::format("{}%", pick(10, 100));
    add("PodDisruptionBudget", meta(ns, app), spec);
    // Pods that never become Ready may exhaust any budget, so there is such an incident for every budget.
    const Duration when = moment(seconds(150));
    if (rng_.chance(30))
      heal(when, "budget removed",
           [ns, app](TestCluster& cluster) { cluster.remove("poddisruptionbudgets", ns, app); });
    else
      heal(when, "budget opened", [ns, app](TestCluster& cluster) {
        cluster.patch(
            "poddisruptionbudgets", ns, app,
            {{"spec",
              {{"minAvailable", 0}, {"maxUnavailable", nullptr}, {"unhealthyPodEvictionPolicy", "AlwaysAllow"}}}});
      });
    if (!rng_.chance(8)) return;
    const std::string second = app + "-second";
    add("PodDisruptionBudget", meta(ns, second), spec);
    heal(moment(seconds(150)), "overlap removed",
         [ns, second](TestCluster& cluster) { cluster.remove("poddisruptionbudgets", ns, second); });
  }

  void mirror() {
    Json metadata = meta("kube-system", "etcd-n1");
    metadata["annotations"] = {{"kubernetes.io/config.mirror", "abc"}};
    Json spec = pod_spec();
    spec["nodeName"] = "n1";
    add("Pod", metadata, spec, running(true));
  }

  void people() {
    for (const Json& object : world_.objects) {
      if (text(object, "/kind") != "Pod" || !rng_.chance(4)) continue;
      const std::string ns = ns_of(object), name = name_of(object);
      if (!annotation(object, "kubernetes.io/config.mirror").empty()) continue;
      if (rng_.chance(50))
        incident(moment(seconds(60)), "pod deleted",
                 [ns, name](TestCluster& cluster) { cluster.delete_gracefully("pods", ns, name); });
      else
        incident(moment(seconds(60)), "pod force deleted",
                 [ns, name](TestCluster& cluster) { cluster.remove("pods", ns, name); });
    }
    if (rng_.chance(10))
      incident(moment(seconds(60)), "namespace deleted",
               [](TestCluster& cluster) { cluster.terminate_namespace("team-1"); });
    if (rng_.chance(15)) {
      incident(Duration::zero(), "disruption controller stopped",
               [](TestCluster& cluster) { cluster.stop_disruption_controller(); });
      incident(moment(seconds(60)), "disruption controller started",
               [](TestCluster& cluster) { cluster.start_disruption_controller(); });
    }
    if (rng_.chance(15)) {
      incident(moment(seconds(20)), "kubelet stopped", [](TestCluster& cluster) { cluster.stop_kubelet("n1"); });
      incident(seconds(20) + moment(seconds(60)), "kubelet started",
               [](TestCluster& cluster) { cluster.start_kubelet("n1"); });
      world_.healed_after += seconds(20);
    }
  }

  void misfortune() {
    for (std::uint64_t i = pick(0, 3); i > 0; --i) {
      const Duration when = moment(seconds(100)),
                     down = rng_.between(Duration(milliseconds(100)), Duration(seconds(25)));
      world_.healed_after = std::max(world_.healed_after, when + down);
      switch (pick(0, 5)) {
        case 0: incident(when, "restart", [down](TestCluster& cluster) { cluster.restart(down); }); break;
        case 1: incident(when, "connections dropped", [](TestCluster& cluster) { cluster.drop_connections(); }); break;
        case 2: incident(when, "watches closed", [](TestCluster& cluster) { cluster.close_watches(); }); break;
        case 3: incident(when, "watches silenced", [](TestCluster& cluster) { cluster.silence_watches(); }); break;
        case 4:
          incident(when, "compacted", [](TestCluster& cluster) {
            cluster.compact();
            cluster.close_watches();
            cluster.expire_continue_tokens();
          });
          break;
        default: incident(when, "throttled", [down](TestCluster& cluster) { cluster.throttle(down, 2); });
      }
    }
    static constexpr FaultKind kinds[] = {
        FaultKind::refuse,   FaultKind::reset_before, FaultKind::reset_after, FaultKind::stall,        FaultKind::slow,
        FaultKind::truncate, FaultKind::html,         FaultKind::throttle,    FaultKind::server_error, FaultKind::cut,
        FaultKind::end,      FaultKind::half_line,    FaultKind::split};
    for (std::uint64_t i = pick(0, 4); i > 0; --i) {
      FaultRule rule;
      rule.fault.kind = kinds[pick(0, std::size(kinds) - 1)];
      rule.fault.delay = rng_.between(Duration(milliseconds(1)), Duration(seconds(3)));
      rule.fault.code = rng_.chance(50) ? 503 : rng_.chance(50) ? 500 : 504;
      rule.fault.proxy = rng_.chance(30);
      rule.fault.after_pieces = pick(0, 5);
      rule.percent = static_cast<unsigned>(pick(1, 30));
      rule.until = TimePoint{} + moment(seconds(120));
      world_.faults.push_back(rule);
    }
  }

  SeededRng rng_;
  GeneratorOptions options_;
  GeneratedWorld world_;
  std::uint64_t node_count_ = 0;
  std::size_t left_ = 0;
  int apps_ = 0;
};

}  // namespace

Duration GeneratedWorld::moment(SeededRng& rng, Duration latest) {
  const Duration when = rng.between(Duration(std::chrono::milliseconds(100)), latest);
  healed_after = std::max(healed_after, when);
  return when;
}

GeneratedWorld generate_world(std::uint64_t seed, GeneratorOptions options) {
  return Generator(seed, options).run();
}

std::vector<FaultRule> stage(const GeneratedWorld& world, TestCluster& cluster, TimePoint now) {
  cluster.timing() = world.timing;
  for (const Json& object : world.objects) cluster.create(find_kind(text(object, "/kind"))->resource, object);
  for (const GeneratedWorld::Incident& incident : world.incidents) {
    const auto act = [act = incident.act, &cluster] { act(cluster); };
    cluster.after(incident.after, act);
    if (incident.heals && world.restored_after && incident.after < *world.restored_after)
      cluster.after(*world.restored_after + notice_restored, act);
  }
  std::vector<FaultRule> faults = world.faults;
  for (FaultRule& rule : faults) {
    rule.until = now + (rule.until - TimePoint{});
    if (rule.from != TimePoint::min()) rule.from = now + (rule.from - TimePoint{});
  }
  return faults;
}

}  // namespace haulout::sim
