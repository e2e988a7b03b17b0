// A simulated Kubernetes cluster in virtual or real time: storage, API server, controllers, scheduler and kubelets on
// one io_context. What it does depends only on what it was loaded with, on the requests it gets and on its Rng: same
// inputs, same course of events.
//
// The methods below the API are what other people do to the cluster; they take effect at once and never fail: an object
// that is not there is left alone. One thread; must outlive every operation on its transport and every stream.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http/transport.hpp"
#include "retry/rng.hpp"
#include "sim/api_server.hpp"
#include "sim/world.hpp"

namespace haulout::sim {

class Cluster {
 public:
  Cluster(boost::asio::any_io_executor executor, Clock& clock, Rng& rng, Timing timing = {});
  ~Cluster();

  // Adds objects as kubectl prints them (a List, single objects, JSON or multi-document YAML). uid, creationTimestamp
  // and generation are kept or made up; namespaces that are only referred to are created.
  Result<> load(std::string_view yaml_or_json);
  // The same with what sim/loader.hpp has read.
  void add(std::vector<Json> objects);

  http::Transport& api();
  ApiServer& server();
  // The world goes on; until cancelled. Nothing is answered without it.
  boost::asio::awaitable<void> run();

  // -- What other people do. `resource` is the plural: "pods".
  void create(std::string_view resource, Json object);
  // A force delete, whatever finalizers say.
  void remove(std::string_view resource, std::string_view ns, std::string_view name);
  void patch(std::string_view resource, std::string_view ns, std::string_view name, const Json& merge_patch);
  Json get(std::string_view resource, std::string_view ns, std::string_view name) const;  // null if absent
  std::vector<Json> all(std::string_view resource) const;
  const Store& store() const;  // the same without copies
  // Machines (sim/machines.hpp): down means NotReady, its pods stay; up with an empty boot id means that it had only
  // been out of reach.
  void node_down(std::string_view name);
  void node_up(std::string_view name, std::string boot_id = {});
  void reboot_node(std::string_view name, Duration down, std::string new_boot_id);
  // Deleted and registered again: same name, new UID.
  void replace_node(std::string_view name);
  void cordon(std::string_view node);    // as kubectl does: the field only, as manager "kubectl"
  void uncordon(std::string_view node);  // likewise
  void delete_gracefully(std::string_view resource, std::string_view ns, std::string_view name,
                         std::optional<std::int64_t> grace_seconds = std::nullopt);
  void terminate_namespace(std::string_view ns);
  void at(TimePoint when, std::function<void()> action);
  void after(Duration delay, std::function<void()> action);

  // -- How the server misbehaves.
  // Every connection breaks, new ones are refused for that long, and the watch cache starts anew.
  void restart(Duration down);
  void refuse_connections(Duration how_long);
  void drop_connections();
  void close_watches();    // proper end, nothing lost
  void silence_watches();  // black hole
  // Every watch is behind what lists say, and catches up then.
  void lag_watches(Duration how_long);
  // Lists with resourceVersion=0 show the state of now until then: those of a server whose cache is behind.
  void lag_cache(Duration how_long);
  void compact();  // watches from older revisions get 410
  void expire_continue_tokens();
  void throttle(Duration how_long, int retry_after);
  void restore_etcd(std::uint64_t revision);  // the state of that revision, and its revision
  // "create", "pods/eviction": from now on 403.
  void forbid(std::string_view verb, std::string_view resource);
  void permit(std::string_view verb, std::string_view resource);
  void stop_kubelet(std::string_view node);
  void start_kubelet(std::string_view node);
  // From now on whoever carries that token is this caller; nothing: 401.
  void set_token(std::string token, std::optional<Identity> identity);
  void stop_garbage_collector();
  void start_garbage_collector();
  void stop_disruption_controller();
  void start_disruption_controller();

  // -- Looking on.
  const std::deque<AuditEntry>& audit() const;
  void on_change(std::function<void(const Change&)> listener);
  std::uint64_t revision() const;
  std::size_t open_watches() const;
  Timing& timing();
  Switches& switches();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace haulout::sim
