// A simulated Kubernetes cluster in virtual or real time: storage, API server, controllers, scheduler and kubelets on
// one io_context. Its behaviour depends only on the loaded objects, the requests and its Rng: the same inputs give the
// same sequence of events.
//
// The methods that are declared after run() bypass the API server. They take effect immediately and never fail: they
// ignore an object that does not exist. Single-threaded. The cluster must outlive the streams and operations of the
// transport that api() returns.
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

struct ClusterParts;

// Returns the key of an object. Drops the namespace if the resource is cluster-scoped. `resource` is the plural:
// "pods".
Key key_of(std::string_view resource, std::string_view ns, std::string_view name);

class Cluster {
 public:
  Cluster(boost::asio::any_io_executor executor, Clock& clock, Rng& rng, Timing timing = {});
  ~Cluster();

  // Adds objects as kubectl prints them (a List, single objects, JSON or multi-document YAML). Keeps uid,
  // creationTimestamp and generation, or generates them if absent. Creates namespaces that exist only in the metadata
  // of objects. Fails as read_objects() in sim/loader.hpp does.
  Result<> load(std::string_view yaml_or_json);
  // Adds objects that read_objects() in sim/loader.hpp has returned.
  void add(std::vector<Json> objects);

  http::Transport& api();
  ApiServer& server();
  // Runs the simulated world until cancelled. Unless it runs, the server responds to no request.
  boost::asio::awaitable<void> run();

  // Stores the object, and its namespace if that does not exist. `resource` is the plural: "pods".
  void create(std::string_view resource, Json object);
  // Removes the object immediately, even if it has finalizers.
  void remove(std::string_view resource, std::string_view ns, std::string_view name);
  void patch(std::string_view resource, std::string_view ns, std::string_view name, const Json& merge_patch);
  Json get(std::string_view resource, std::string_view ns, std::string_view name) const;  // returns null if absent
  std::vector<Json> all(std::string_view resource) const;
  const Store& store() const;  // gives direct read access, without copies
  // node_down() and node_up() control the machine of a Node (sim/machines.hpp). node_down() makes the Node NotReady;
  // its pods stay. An empty boot ID in node_up() means that the machine was only unreachable and did not reboot.
  void node_down(std::string_view name);
  void node_up(std::string_view name, std::string boot_id = {});
  void stop_kubelet(std::string_view node);
  // From now on, the server responds with 403 to requests with this verb for this resource, for example "create" and
  // "pods/eviction".
  void forbid(std::string_view verb, std::string_view resource);
  void after(Duration delay, std::function<void()> action);
  void on_change(std::function<void(const Change&)> listener);
  Switches& switches();
  // Returns the parts of the cluster, see sim/cluster_parts.hpp.
  ClusterParts& parts();
  const ClusterParts& parts() const;

 private:
  std::unique_ptr<ClusterParts> parts_;
};

}  // namespace haulout::sim
