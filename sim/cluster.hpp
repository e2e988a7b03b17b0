// A simulated Kubernetes cluster in virtual or real time: storage, API server, controllers, scheduler and kubelets on
// one io_context. Its behaviour depends only on the loaded objects, the requests and its Rng: the same inputs give the
// same course of events.
//
// The methods after run() bypass the API. They do what people other than the client under test do to the cluster, make
// its parts misbehave, or read its state. They take effect at once and never fail: they ignore an object that does not
// exist. Single-threaded. The cluster must outlive every operation on the transport that api() returns, and every
// stream.
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
  // and generation are kept, or generated if absent. Creates namespaces that objects only refer to. Fails as
  // read_objects() in sim/loader.hpp does.
  Result<> load(std::string_view yaml_or_json);
  // Adds objects that sim/loader.hpp has read.
  void add(std::vector<Json> objects);

  http::Transport& api();
  ApiServer& server();
  // Runs the simulated world until cancelled. Without it the server answers no request.
  boost::asio::awaitable<void> run();

  // -- What other people do. `resource` is the plural: "pods".
  void create(std::string_view resource, Json object);
  // Removes the object at once, even if it has finalizers.
  void remove(std::string_view resource, std::string_view ns, std::string_view name);
  void patch(std::string_view resource, std::string_view ns, std::string_view name, const Json& merge_patch);
  Json get(std::string_view resource, std::string_view ns, std::string_view name) const;  // returns null if absent
  std::vector<Json> all(std::string_view resource) const;
  const Store& store() const;  // gives direct read access, without copies
  // The next three control machines (sim/machines.hpp). node_down() makes the Node NotReady; its pods stay. An empty
  // boot ID in node_up() means that the machine was only unreachable and did not reboot.
  void node_down(std::string_view name);
  void node_up(std::string_view name, std::string boot_id = {});
  void reboot_node(std::string_view name, Duration down, std::string new_boot_id);
  // Deletes the Node and registers it again, with the same name and a new UID.
  void replace_node(std::string_view name);
  void cordon(std::string_view node);    // sets only spec.unschedulable, as manager "kubectl"
  void uncordon(std::string_view node);  // clears only spec.unschedulable, as manager "kubectl"
  void delete_gracefully(std::string_view resource, std::string_view ns, std::string_view name,
                         std::optional<std::int64_t> grace_seconds = std::nullopt);
  void terminate_namespace(std::string_view ns);
  void at(TimePoint when, std::function<void()> action);
  void after(Duration delay, std::function<void()> action);

  // -- How the server misbehaves.
  // Breaks every connection, refuses new ones for `down`, then starts with an empty watch cache.
  void restart(Duration down);
  void refuse_connections(Duration how_long);
  void drop_connections();
  void close_watches();    // ends all watches properly, without loss
  void silence_watches();  // open watches deliver nothing any more
  // Delays all watch events until `how_long` from now, while lists are up to date.
  void lag_watches(Duration how_long);
  // For `how_long`, lists with resourceVersion=0 return the state at the moment of this call, as from a stale cache.
  void lag_cache(Duration how_long);
  void compact();  // from now on, watches from older revisions get 410
  void expire_continue_tokens();
  void throttle(Duration how_long, int retry_after);
  void restore_etcd(std::uint64_t revision);  // sets all objects and the revision back to `revision`
  // From now on, the server answers requests with this verb for this resource with 403. Example: "create",
  // "pods/eviction".
  void forbid(std::string_view verb, std::string_view resource);
  void permit(std::string_view verb, std::string_view resource);
  void stop_kubelet(std::string_view node);
  void start_kubelet(std::string_view node);
  // From now on, requests with this token come from `identity`. If `identity` is unset, they get 401.
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
