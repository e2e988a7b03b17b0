#include "tests/worlds/migrations.hpp"

#include <fmt/format.h>

#include <memory>
#include <set>

#include "sim/status_bodies.hpp"

namespace haulout::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* webhook_name = "migrations.example.com";

enum class Way { admits, denies_429, denies_400, slow, down, dry_run };
constexpr std::pair<Way, const char*> ways[] = {
    {Way::admits, "admits"}, {Way::denies_429, "denies-429"}, {Way::denies_400, "denies-400"}, {Way::slow, "slow"},
    {Way::down, "down"},     {Way::dry_run, "dry-run"}};

// One webhook with the controller behind it. The callbacks of the cluster share it.
struct Migrator {
  Way way = Way::admits;
  std::string ns, app;
  Duration takes{};      // time to answer a call
  Duration migration{};  // duration of one pod's migration
  bool one_by_one = false;
  std::set<std::string> under_way{};  // names of the pods that migrate now
  TimePoint free_at{};                // end of the last planned migration; used if `one_by_one`
};

StatusBody refusal(int code, std::string reason, std::string message) {
  StatusBody body;
  body.code = code;
  body.reason = std::move(reason);
  body.message = std::move(message);
  return body;
}

StatusBody not_called() {
  return refusal(500, "InternalError",
                 fmt::format("Internal error occurred: failed calling webhook \"{}\": failed to call webhook: Post "
                             "\"https://migrations.example.svc:443/\": context deadline exceeded",
                             webhook_name));
}

// Creates the replacement on n2 before the pod is deleted.
void replace(TestCluster& cluster, const std::string& ns, const std::string& name) {
  const Json pod = cluster.get("pods", ns, name);
  const std::string next = name + "-moved";
  if (pod.is_null() || terminating(pod) || terminating(cluster.get("namespaces", "", ns))) return;
  if (!cluster.get("pods", ns, next).is_null()) return;
  Json moved = {{"kind", "Pod"}, {"metadata", {{"name", next}, {"namespace", ns}}}, {"spec", pod["spec"]}};
  for (const char* field : {"labels", "annotations", "ownerReferences"})
    moved["metadata"][field] = pod["metadata"][field];
  moved["spec"]["nodeName"] = "n2";
  moved["status"] = {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
  cluster.create("pods", std::move(moved));
}

void start(Migrator& by, TestCluster& cluster, const std::string& name, TimePoint now) {
  if (!by.under_way.insert(name).second) return;
  const TimePoint begins = by.one_by_one ? std::max(now, by.free_at) : now;
  by.free_at = begins + by.migration;
  cluster.after(by.free_at - now, [&by, &cluster, name] {
    by.under_way.erase(name);
    replace(cluster, by.ns, name);
    cluster.delete_gracefully("pods", by.ns, name);
  });
}

class Migrations {
 public:
  explicit Migrations(GeneratedWorld& world) : world_(world), rng_(world.seed * 0x9e3779b97f4a7c15u + 12) {}

  void add() {
    if (!rng_.chance(50)) return;
    for (std::uint64_t i = pick(1, 3); i > 0; --i) group(i);
  }

 private:
  std::uint64_t pick(std::uint64_t low, std::uint64_t high) { return rng_.between(low, high); }

  void group(std::uint64_t number) {
    const auto by = std::make_shared<Migrator>();
    const auto [way, told] = ways[pick(0, std::size(ways) - 1)];
    by->way = way;
    by->ns = fmt::format("team-{}", pick(1, 3));
    by->app = fmt::format("vm{}", number);
    by->one_by_one = rng_.chance(40);
    by->migration = rng_.between(Duration(seconds(1)), Duration(seconds(20)));
    if (way == Way::slow) by->takes = rng_.between(Duration(seconds(1)), Duration(seconds(12)));
    const Duration until = rng_.between(Duration(seconds(1)), Duration(seconds(60)));
    if (way == Way::down && rng_.chance(50)) by->takes = rng_.between(Duration(seconds(1)), Duration(seconds(10)));
    if (way == Way::down) world_.healed_after = std::max(world_.healed_after, until);
    const std::uint64_t count = pick(1, 4);
    for (std::uint64_t i = 0; i < count; ++i) pod(*by, fmt::format("{}-{}", by->app, i));
    if (by->one_by_one && way != Way::dry_run) budget(by->ns, by->app, {{"app", by->app}}, {{"maxUnavailable", 0}});
    world_.migrations.push_back(told);
    world_.migrations_take += static_cast<Duration::rep>(count) * (by->migration + by->takes + seconds(30));
    world_.incidents.push_back({Duration::zero(), fmt::format("webhook of {} {}", by->app, told),
                                [by, until](TestCluster& cluster) { stand_by(by, until, cluster); }});
  }

  static void stand_by(const std::shared_ptr<Migrator>& by, Duration until, TestCluster& cluster) {
    const auto is_down = std::make_shared<bool>(by->way == Way::down);
    cluster.after(until, [is_down] { *is_down = false; });
    cluster.server().admit_evictions([by, is_down, &cluster](const AuditEntry& entry) -> Admission {
      if (entry.ns != by->ns || !entry.name.starts_with(by->app + "-")) return {};
      if (*is_down) return {by->takes, not_called()};
      start(*by, cluster, entry.name, entry.time);
      const std::string denied = fmt::format("admission webhook \"{}\" denied the request: ", webhook_name);
      switch (by->way) {
        case Way::denies_429: return {{}, refusal(429, "TooManyRequests", denied + "the migration was triggered")};
        case Way::denies_400: return {{}, refusal(400, "", denied + "it is rolled instead")};
        case Way::dry_run: return {.as_dry_run = true};
        case Way::slow: return {by->takes};
        case Way::admits:
        case Way::down: break;
      }
      return {};
    });
  }

  void pod(const Migrator& by, const std::string& name) {
    Json owner = {{"apiVersion", by.one_by_one ? "core.strimzi.io/v1beta2" : "kubevirt.io/v1"},
                  {"kind", by.one_by_one ? "StrimziPodSet" : "VirtualMachineInstance"},
                  {"name", by.one_by_one ? by.app : name},
                  {"uid", "uid-of-" + (by.one_by_one ? by.app : name)},
                  {"controller", true}};
    const Json labels = {{"app", by.app}, {"vm", name}};
    world_.objects.push_back(
        {{"kind", "Pod"},
         {"metadata",
          {{"name", name},
           {"namespace", by.ns},
           {"labels", labels},
           {"ownerReferences", {std::move(owner)}},
           {"annotations", {{"sim.haulout.dev/terminates-after", fmt::format("{}ms", pick(10, 2000))}}}}},
         {"spec",
          {{"nodeName", world_.node},
           {"terminationGracePeriodSeconds", pick(0, 30)},
           {"containers", {{{"name", "app"}, {"image", "example.com/app:1"}}}}}},
         {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
    if (!by.one_by_one && by.way != Way::dry_run) budget(by.ns, name, {{"vm", name}}, {{"minAvailable", 1}});
  }

  void budget(const std::string& ns, const std::string& name, const Json& labels, Json spec) {
    spec["selector"]["matchLabels"] = labels;
    world_.objects.push_back({{"kind", "PodDisruptionBudget"},
                              {"metadata", {{"name", name}, {"namespace", ns}}},
                              {"spec", std::move(spec)}});
  }

  GeneratedWorld& world_;
  SeededRng rng_;
};

}  // namespace

void add_migrations(GeneratedWorld& world) {
  Migrations(world).add();
}

}  // namespace haulout::sim
