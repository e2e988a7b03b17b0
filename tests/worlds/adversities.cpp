#include "tests/worlds/adversities.hpp"

#include <algorithm>
#include <memory>

namespace haulout::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Adversities {
 public:
  Adversities(GeneratedWorld& world, const GeneratorOptions& options)
      : world_(world), options_(options), rng_(world.seed * 0x9e3779b97f4a7c15u + 11) {}

  void add() {
    world_.as_kubelet = rng_.chance(12);
    if (!options_.faults) return;
    if (!world_.node_goes && rng_.chance(15)) restored_etcd();
    for (std::uint64_t i = pick(0, 2); i > 0; --i) world_.faults.push_back(outage());
    for (std::uint64_t i = pick(0, 3); i > 0; --i) world_.faults.push_back(passing());
    if (rng_.chance(6)) world_.faults.push_back(hopeless());
  }

 private:
  std::uint64_t pick(std::uint64_t low, std::uint64_t high) { return rng_.between(low, high); }
  void incident(Duration after, std::string what, std::function<void(TestCluster&)> act) {
    world_.incidents.push_back({after, std::move(what), std::move(act)});
  }
  template <std::size_t n>
  int one_of(const int (&codes)[n]) {
    return codes[pick(0, n - 1)];
  }

  // -- The storage
  // Restores etcd from an earlier backup. If this undoes the cordon of the node, people cordon the node again after
  // `notice_restored`.
  void restored_etcd() {
    const Duration backup = rng_.between(Duration(milliseconds(100)), Duration(seconds(60)));
    const Duration restored = backup + rng_.between(Duration(milliseconds(100)), Duration(seconds(60)));
    const Duration down = rng_.between(Duration(milliseconds(100)), Duration(seconds(20)));
    world_.restored_after = restored;
    world_.healed_after = std::max({world_.healed_after, restored + notice_restored, restored + down});
    const auto revision = std::make_shared<std::uint64_t>(0);
    incident(backup, "etcd backed up", [revision](TestCluster& cluster) { *revision = cluster.revision(); });
    incident(restored, "etcd restored", [revision, down, node = world_.node](TestCluster& cluster) {
      const auto cordoned = [&cluster, node] { return flag(cluster.get("nodes", "", node), "/spec/unschedulable"); };
      const bool before = cordoned();
      // The store cannot restore a state that is older than its history.
      cluster.restore_etcd(std::max(*revision, cluster.store().history_start()));
      cluster.restart(down);
      if (before && !cordoned()) cluster.after(notice_restored, [&cluster, node] { cluster.cordon(node); });
    });
  }

  // -- The connection
  // A fault of every request, for a limited time.
  FaultRule outage() {
    FaultRule rule;
    const Duration from = rng_.between(Duration::zero(), Duration(seconds(60)));
    const Duration until = from + rng_.between(Duration(milliseconds(500)), Duration(seconds(40)));
    rule.from = TimePoint{} + from;
    rule.until = TimePoint{} + until;
    world_.healed_after = std::max(world_.healed_after, until);
    Fault& fault = rule.fault;
    switch (pick(0, 5)) {
      case 0: fault.kind = FaultKind::dns; break;
      case 1: fault.kind = FaultKind::tls; break;
      case 2:
        fault.kind = FaultKind::tls;
        fault.words = "the certificate of api.example.com:6443 expired on Jan  1 00:00:00 2026 GMT";
        break;
      case 3: fault.kind = FaultKind::credentials; break;
      case 4: fault.kind = FaultKind::protocol; break;
      default: fault.kind = FaultKind::crowded, fault.most_streams = pick(0, 4);
    }
    return rule;
  }

  FaultRule at_times() {
    FaultRule rule;
    rule.percent = static_cast<unsigned>(pick(1, 20));
    rule.until = TimePoint{} + world_.moment(rng_, seconds(120));
    rule.fault.after_pieces = pick(0, 5);
    return rule;
  }

  // A transient fault: a client should retry.
  FaultRule passing() {
    FaultRule rule = at_times();
    Fault& fault = rule.fault;
    fault.kind = FaultKind::server_error;
    switch (pick(0, 9)) {
      case 0: fault.kind = FaultKind::hidden_error, fault.code = one_of({429, 500, 503, 504}); break;
      case 1: fault.kind = FaultKind::no_kind; break;
      case 2: fault.kind = FaultKind::no_uid; break;
      case 3:
      case 4:
        fault.kind = FaultKind::error_event, fault.code = one_of({401, 410, 429, 500, 503, 504}), rule.percent *= 4;
        break;
      case 5: fault.kind = FaultKind::future, rule.verb = "list"; break;
      case 6: fault.code = 409, rule.verb = "patch"; break;
      case 7: fault.code = one_of({409, 422}), rule.verb = "create", rule.resource = "pods/eviction"; break;
      case 8: fault.code = one_of({423, 425, 520, 522}), fault.proxy = rng_.chance(50); break;
      default: fault.kind = FaultKind::protocol;
    }
    return rule;
  }

  // Answers after which a retry is useless: an API server's answers to an invalid request, or the answers of a host
  // without an API server.
  FaultRule hopeless() {
    world_.hopeless_answers = true;
    FaultRule rule = at_times();
    rule.fault.kind = FaultKind::server_error;
    rule.fault.code = one_of({400, 404, 405, 406, 415, 422, 431, 505});
    rule.fault.plain = rule.fault.code == 404 || rule.fault.code == 431;
    if (rule.fault.code == 404) rule.verb = "list";
    return rule;
  }

  GeneratedWorld& world_;
  const GeneratorOptions& options_;
  SeededRng rng_;
};

}  // namespace

void add_adversities(GeneratedWorld& world, const GeneratorOptions& options) {
  Adversities(world, options).add();
}

}  // namespace haulout::sim
