// A simulated Kubernetes cluster in virtual or real time: storage, API server, controllers, scheduler and kubelets on
// one io_context. Its behaviour depends only on the loaded objects, the requests and its Rng: the same inputs give the
// same course of events.
//
// The methods after run() bypass the API. They take effect at once and never fail: they ignore an object that does not
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

struct ClusterParts;

// Returns the key of an object; drops the namespace if the resource has none. `resource` is the plural: "pods".
Key key_of(std::string_view resource, std::string_view ns, std::string_view name);

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

  // `resource` is the plural: "pods".
  void create(std::string_view resource, Json object);
  // Removes the object at once, even if it has finalizers.
  void remove(std::string_view resource, std::string_view ns, std::string_view name);
  void patch(std::string_view resource, std::string_view ns, std::string_view name, const Json& merge_patch);
  Json get(std::string_view resource, std::string_view ns, std::string_view name) const;  // returns null if absent
  std::vector<Json> all(std::string_view resource) const;
  const Store& store() const;  // gives direct read access, without copies
  // The next two control machines (sim/machines.hpp). node_down() makes the Node NotReady; its pods stay. An empty
  // boot ID in node_up() means that the machine was only unreachable and did not reboot.
  void node_down(std::string_view name);
  void node_up(std::string_view name, std::string boot_id = {});
  void stop_kubelet(std::string_view node);
  // From now on, the server answers requests with this verb for this resource with 403. Example: "create",
  // "pods/eviction".
  void forbid(std::string_view verb, std::string_view resource);
  void after(Duration delay, std::function<void()> action);
  void on_change(std::function<void(const Change&)> listener);
  Switches& switches();
  // Everything of which the cluster consists, see sim/cluster_parts.hpp.
  ClusterParts& parts();
  const ClusterParts& parts() const;

 private:
  std::unique_ptr<ClusterParts> parts_;
};

}  // namespace haulout::sim
