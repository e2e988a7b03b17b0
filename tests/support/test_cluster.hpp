// The simulated cluster for tests. Adds actions of people and of other clients, and faults of the API server, its
// storage and the controllers.
//
// Like those of sim::Cluster, these methods bypass the API, take effect at once and never fail: they ignore an object
// that does not exist.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "k8s/codec.hpp"
#include "sim/cluster.hpp"
#include "sim/cluster_parts.hpp"
#include "sim/pod_lifecycle.hpp"
#include "sim/single_objects.hpp"
#include "tests/support/callers.hpp"

namespace haulout::sim {

// Actions of people and of other clients. `resource` is the plural: "pods".
class PeopleAtWork {
 public:
  explicit PeopleAtWork(ClusterParts& parts) : parts_(parts) {}

  // Deletes the Node and registers it again, with the same name and a new UID.
  void replace_node(std::string_view name) { parts_.machines.register_again(std::string(name)); }
  // Takes the machine down, and up again after `down`.
  void reboot_node(std::string_view name, Duration down, std::string new_boot_id) {
    parts_.machines.down(std::string(name));
    parts_.agenda.after(down, [this, node = std::string(name), boot_id = std::move(new_boot_id)] {
      parts_.machines.up(node, boot_id);
    });
  }
  // cordon() and uncordon() change only spec.unschedulable, as manager "kubectl".
  void cordon(std::string_view node) {
    parts_.store.modify(key_of("nodes", "", node), [&](Json& next) {
      next["spec"]["unschedulable"] = true;
      book_unschedulable(next, "kubectl", parts_.world.wall_now());
    });
  }
  void uncordon(std::string_view node) {
    parts_.store.modify(key_of("nodes", "", node), [&](Json& next) {
      if (sim::at(next, "/spec").is_object()) next["spec"].erase("unschedulable");
      book_unschedulable(next, "kubectl", parts_.world.wall_now());
    });
  }
  // taint() adds a taint with this key; untaint() removes it.
  void taint(std::string_view node, std::string_view key, std::string_view effect = "NoSchedule") {
    parts_.store.modify(key_of("nodes", "", node), [&](Json& next) {
      next["spec"]["taints"].push_back({{"key", std::string(key)}, {"effect", std::string(effect)}});
    });
  }
  void untaint(std::string_view node, std::string_view key) {
    parts_.store.modify(key_of("nodes", "", node), [&](Json& next) {
      if (!next["spec"].contains("taints")) return;
      std::erase_if(next["spec"]["taints"].get_ref<Json::array_t&>(),
                    [&key](const Json& taint) { return taint.at("key") == std::string(key); });
    });
  }
  void set_node_condition(std::string_view node, std::string_view type, std::string_view status) {
    parts_.store.modify(key_of("nodes", "", node), [&](Json& next) {
      set_condition(next, {{"type", std::string(type)}, {"status", std::string(status)}}, parts_.world.wall_now());
    });
  }
  void delete_gracefully(std::string_view resource, std::string_view ns, std::string_view name,
                         std::optional<std::int64_t> grace_seconds = std::nullopt) {
    sim::delete_gracefully(parts_.world, key_of(resource, ns, name), grace_seconds);
  }
  void terminate_namespace(std::string_view ns) {
    parts_.store.modify(key_of("namespaces", "", ns), [&](Json& next) {
      next["metadata"]["deletionTimestamp"] = k8s::format_time(parts_.world.wall_now());
      next["metadata"]["deletionGracePeriodSeconds"] = 0;
      next["status"]["phase"] = "Terminating";
    });
  }

 private:
  ClusterParts& parts_;
};

// How the server, its storage and its controllers misbehave.
class Misbehaviour {
 public:
  explicit Misbehaviour(ClusterParts& parts) : parts_(parts) {}

  // Breaks every connection, refuses new ones for `down`, then starts with an empty watch cache.
  void restart(Duration down) {
    refuse_connections(down);
    drop_connections();
    // The watch cache of the restarted server begins at the current revision.
    parts_.agenda.after(down, [this] { compact(); });
  }
  void refuse_connections(Duration how_long) { parts_.switches.refused_until = parts_.world.now() + how_long; }
  void drop_connections() { parts_.server.drop_connections(); }
  // Ends all watches properly, without loss.
  void close_watches() { parts_.server.watches().end_all(WatchChannel::End::proper); }
  // Open watches deliver nothing any more.
  void silence_watches() { parts_.server.watches().silence_all(); }
  // Delays all watch events until `how_long` from now, while lists are up to date.
  void lag_watches(Duration how_long) { parts_.server.watches().lag_until(parts_.world.now() + how_long); }
  // For `how_long`, lists with resourceVersion=0 return the state at the moment of this call, as from a stale cache.
  void lag_cache(Duration how_long) { parts_.server.lists().hold_cache_until(parts_.world.now() + how_long); }
  // From now on, watches from older revisions get 410.
  void compact() { parts_.store.forget_history(); }
  void expire_continue_tokens() { parts_.server.lists().expire_continue_tokens(); }
  void throttle(Duration how_long, int retry_after) {
    parts_.switches.throttled_until = parts_.world.now() + how_long;
    parts_.switches.throttle_retry_after = retry_after;
  }
  // Sets all objects and the revision back to `revision`.
  void restore_etcd(std::uint64_t revision) {
    // Ends all watches first, so that they deliver no event of the restore.
    drop_connections();
    expire_continue_tokens();
    parts_.store.restore(revision);
  }
  // Ends the effect of Cluster::forbid().
  void permit(std::string_view verb, std::string_view resource) {
    parts_.switches.forbidden.erase(std::string(verb) + " " + std::string(resource));
  }
  void start_kubelet(std::string_view node) {
    parts_.switches.stopped_kubelets.erase(std::string(node));
    parts_.kubelet.resync(std::string(node));
  }
  // From now on, requests with this token come from `identity`. If `identity` is unset, they get 401.
  void set_token(std::string token, std::optional<Identity> identity) {
    parts_.switches.tokens.insert_or_assign(std::move(token), std::move(identity));
  }
  void stop_garbage_collector() { parts_.switches.garbage_collector = false; }
  void start_garbage_collector() {
    parts_.switches.garbage_collector = true;
    parts_.garbage_collector.resync();
  }
  void stop_disruption_controller() { parts_.switches.disruption_controller = false; }
  void start_disruption_controller() {
    parts_.switches.disruption_controller = true;
    parts_.disruption.resync();
  }

 private:
  ClusterParts& parts_;
};

class TestCluster : public Cluster, public PeopleAtWork, public Misbehaviour {
 public:
  TestCluster(boost::asio::any_io_executor executor, Clock& clock, Rng& rng, Timing timing_in = {})
      : Cluster(executor, clock, rng, timing_in), PeopleAtWork(parts()), Misbehaviour(parts()) {}

  void at(TimePoint when, std::function<void()> action) { parts().agenda.at(when, std::move(action)); }
  const std::deque<AuditEntry>& audit() const { return parts().server.audit(); }
  std::uint64_t revision() const { return store().revision(); }
  std::size_t open_watches() { return parts().server.watches().open_watches(); }
  Timing& timing() { return parts().timing; }
};

}  // namespace haulout::sim
