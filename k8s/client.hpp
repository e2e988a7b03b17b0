// Typed verbs: builder + transport + status + codec. One attempt each, no retries, but for lists: an expired continue
// token restarts the list (twice, then unpaged), as the API asks. Failures are those of Transport plus decode, also of
// an answer about other Nodes or objects than those that were asked for, and status. Cancellable; must outlive its
// calls. Owns nothing.
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

// One page of a list, from a busy server: it gives up after 60 s itself.
inline constexpr Duration longest_page = std::chrono::seconds(60);

struct ClientOptions {
  FieldValidation validation = FieldValidation::warn;
  std::uint32_t page_size = 500;  // kubectl drain's --chunk-size; 0: unpaged
  // Bytes that what is kept of one collection may take, about; 0: as many as list_budget.hpp allows.
  std::size_t most_memory = 0;
};

class Client {
 public:
  Client(http::Transport& transport, Clock& clock, ClientOptions options = {})
      : transport_(transport), clock_(clock), options_(options) {}

  Task<Node> get_node(std::string name, TimePoint deadline);
  Task<List<Node>> list_nodes(std::string label_selector, TimePoint deadline);
  Task<Node> patch_node(std::string name, std::string merge_patch, DryRun dry_run, TimePoint deadline);
  // Most recent, all namespaces. The node name must not be empty: that selector would match every unscheduled pod.
  Task<List<Pod>> list_pods_on(std::string node, TimePoint deadline);
  Task<List<PodDisruptionBudget>> list_pdbs(TimePoint deadline);
  // The API selects VolumeAttachments by name only: those of all nodes come, and what is not `wanted` is dropped page
  // by page.
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
  // A Deployment, ReplicaSet or StatefulSet (apps/v1), whichever `kind` says.
  Task<Workload> get_workload(std::string kind, std::string ns, std::string name, TimePoint deadline);
  Task<Workload> get_scale(std::string api_version, std::string resource, std::string ns, std::string name,
                           TimePoint deadline);
  // By kind, the plural of the resources of that group and version that have a scale subresource.
  Task<std::map<std::string, std::string>> scalable_resources(std::string api_version, TimePoint deadline);
  Task<AccessReview> review_access(ResourceAttributes attributes, TimePoint deadline);
  // Who we are to the server; needs no permission.
  Task<Self> review_self(TimePoint deadline);
  Task<Node> patch_node_status(std::string name, std::string strategic_merge_patch, TimePoint deadline);

  // Most recent.
  Task<List<Lease>> list_leases(std::string ns, std::string label_selector, TimePoint deadline);
  Task<Lease> get_lease(std::string ns, std::string name, TimePoint deadline);
  // is_already_exists() when the name is taken, also by an earlier attempt of ours whose answer was lost.
  Task<Lease> create_lease(Lease lease, TimePoint deadline);
  Task<Lease> patch_lease(std::string ns, std::string name, std::string merge_patch, TimePoint deadline);
  // Only in the state that was read: otherwise is_conflict().
  Task<> delete_lease(std::string ns, std::string name, std::string uid, std::string resource_version,
                      TimePoint deadline);
  Task<ConfigMap> get_config_map(std::string ns, std::string name, TimePoint deadline);
  // is_already_exists() as with a Lease.
  Task<ConfigMap> create_config_map(ConfigMap config_map, TimePoint deadline);
  Task<ConfigMap> patch_config_map(std::string ns, std::string name, std::string merge_patch, TimePoint deadline);
  Task<> create_event(NodeEvent event, TimePoint deadline);
  // is_not_found() when the Event has expired (an hour after it was last written).
  Task<> repeat_event(std::string ns, std::string name, std::int32_t count, WallTime last_observed, TimePoint deadline);

  // All pages of a collection of Pod, Node, PodDisruptionBudget, VolumeAttachment, Lease or ConfigMap, most recent;
  // `options.limit` is the page size. No page may take longer than `page_timeout`, of however many there are. Of each
  // page only objects that `wanted` says yes to are kept, if it is set.
  template <class T>
  Task<List<T>> list(Resource resource, ListOptions options, TimePoint deadline, Duration page_timeout = longest_page,
                     std::function<bool(const T&)> wanted = {});

  // Wall time as the API server has it: the Date of its last answer that did what was asked for, and what has passed
  // since, so that neither a jump of our own clock nor a proxy's error page moves anything. Whole seconds at best; our
  // own clock before the first such answer.
  WallTime server_now() const;

  // Whether the server has done anything that it was asked for: it can be reached, and knows us.
  bool has_succeeded() const { return has_succeeded_; }

  http::Transport& transport() { return transport_; }
  Clock& clock() { return clock_; }
  // What a collection has too much of, in words.
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
  // What the server's clock showed at that moment.
  std::optional<std::pair<TimePoint, WallTime>> server_clock_;
};

}  // namespace haulout::k8s
