// Typed calls of the Kubernetes API: request builder, transport, status check and codec. Each call makes one attempt
// without retries. Exception: a list restarts if its continue token has expired (twice, then unpaged), as the API asks.
// Failures: those of Transport; Errc::status; Errc::decode, also if the answer is about other Nodes or objects than
// requested. Cancellable; the client must outlive its calls. Borrows the transport and the clock; owns nothing.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "http/transport.hpp"
#include "k8s/codec.hpp"
#include "k8s/list_budget.hpp"
#include "k8s/requests.hpp"

namespace haulout::k8s {

// Time limit for one page of a list from a busy server. The API server itself gives up after 60 s.
inline constexpr Duration longest_page = std::chrono::seconds(60);

struct ClientOptions {
  FieldValidation validation = FieldValidation::warn;
  std::uint32_t page_size = 500;  // default of kubectl drain's --chunk-size; 0 disables paging
  // Approximate limit for the memory of the objects that are kept from one collection, in bytes. 0 leaves only the
  // limits of list_budget.hpp.
  std::size_t most_memory = 0;
};

class Client {
 public:
  Client(http::Transport& transport, Clock& clock, ClientOptions options = {})
      : transport_(transport), clock_(clock), options_(options) {}

  Task<Node> get_node(std::string name, TimePoint deadline);
  Task<List<Node>> list_nodes(std::string label_selector, TimePoint deadline);
  Task<Node> patch_node(std::string name, std::string merge_patch, DryRun dry_run, TimePoint deadline);
  // Returns the most recent state, from all namespaces. The node name must not be empty: that selector would match
  // every unscheduled pod.
  Task<List<Pod>> list_pods_on(std::string node, TimePoint deadline);
  Task<List<PodDisruptionBudget>> list_pdbs(TimePoint deadline);
  // The API can select VolumeAttachments by name only, so the server sends those of all nodes. The client drops those
  // for which `wanted` returns false, page by page.
  Task<List<VolumeAttachment>> list_volume_attachments(std::function<bool(const VolumeAttachment&)> wanted,
                                                       TimePoint deadline);
  Task<NodeVolumes> get_node_volumes(std::string node, TimePoint deadline);
  Task<PersistentVolume> get_persistent_volume(std::string name, TimePoint deadline);
  Task<PersistentVolumeClaim> get_persistent_volume_claim(std::string ns, std::string name, TimePoint deadline);
  Task<Namespace> get_namespace(std::string name, TimePoint deadline);
  Task<Service> get_service(std::string ns, std::string name, TimePoint deadline);
  Task<> evict(std::string ns, std::string pod, DeleteOptions options, TimePoint deadline);
  Task<> delete_pod(std::string ns, std::string pod, DeleteOptions options, TimePoint deadline);
  Task<DaemonSet> get_daemon_set(std::string ns, std::string name, TimePoint deadline);
  // Gets a Deployment, ReplicaSet or StatefulSet (apps/v1). `kind` selects which.
  Task<Workload> get_workload(std::string kind, std::string ns, std::string name, TimePoint deadline);
  Task<Workload> get_scale(std::string api_version, std::string resource, std::string ns, std::string name,
                           TimePoint deadline);
  // Returns the resources of a group and version that have a scale subresource: kind → plural name.
  Task<std::map<std::string, std::string>> scalable_resources(std::string api_version, TimePoint deadline);
  Task<AccessReview> review_access(ResourceAttributes attributes, TimePoint deadline);
  // Returns the identity under which the server sees this client. Needs no permission.
  Task<Self> review_self(TimePoint deadline);
  Task<Node> patch_node_status(std::string name, std::string strategic_merge_patch, TimePoint deadline);

  // Returns the most recent state.
  Task<List<Lease>> list_leases(std::string ns, std::string label_selector, TimePoint deadline);
  Task<Lease> get_lease(std::string ns, std::string name, TimePoint deadline);
  // Fails with is_already_exists() if the name is in use. An earlier attempt of this client whose answer was lost may
  // have created the Lease.
  Task<Lease> create_lease(Lease lease, TimePoint deadline);
  Task<Lease> patch_lease(std::string ns, std::string name, std::string merge_patch, TimePoint deadline);
  // Deletes the Lease only if it is still in the state that was read; otherwise fails with is_conflict().
  Task<> delete_lease(std::string ns, std::string name, std::string uid, std::string resource_version,
                      TimePoint deadline);
  Task<ConfigMap> get_config_map(std::string ns, std::string name, TimePoint deadline);
  // Fails with is_already_exists() as create_lease() does.
  Task<ConfigMap> create_config_map(ConfigMap config_map, TimePoint deadline);
  Task<ConfigMap> patch_config_map(std::string ns, std::string name, std::string merge_patch, TimePoint deadline);
  Task<> create_event(NodeEvent event, TimePoint deadline);
  // Fails with is_not_found() if the Event has expired (one hour after its last write).
  Task<> repeat_event(std::string ns, std::string name, std::int32_t count, WallTime last_observed, TimePoint deadline);

  // Lists all pages of a collection of Pod, Node, PodDisruptionBudget, VolumeAttachment, Lease or ConfigMap, in the
  // most recent state. `options.limit` is the page size. `page_timeout` limits each page; the number of pages is not
  // limited. If `wanted` is set, only objects for which it returns true are kept.
  template <class T>
  Task<List<T>> list(Resource resource, ListOptions options, TimePoint deadline, Duration page_timeout = longest_page,
                     std::function<bool(const T&)> wanted = {});

  // Current time by the API server's clock: the Date of its last successful answer plus the time elapsed since then. So
  // neither a jump of the local clock nor a proxy's error page changes it. At best accurate to a second. Before the
  // first successful answer it is the local time.
  WallTime server_now() const;

  // True if the server has answered any request successfully: it is reachable and accepts the credentials.
  bool has_succeeded() const { return has_succeeded_; }

  http::Transport& transport() { return transport_; }
  Clock& clock() { return clock_; }
  // Describes which limit a collection exceeds; nothing if it exceeds none.
  std::optional<std::string> excess_of(Resource resource, const ListSize& size) const {
    return excess(budget_of(resource), size, options_.most_memory);
  }

 private:
  Task<http::Response> send(http::Request request, TimePoint deadline);
  void see_date(const http::Headers& headers);
  template <class T>
  Task<List<T>> list_pages(Resource resource, ListOptions options, TimePoint deadline, Duration page_timeout,
                           std::function<bool(const T&)> wanted);

  http::Transport& transport_;
  Clock& clock_;
  ClientOptions options_;
  bool has_succeeded_ = false;
  std::string last_date_;
  // Local steady time of an answer, and the server's wall time at that moment.
  std::optional<std::pair<TimePoint, WallTime>> server_clock_;
};

}  // namespace haulout::k8s
