// Builds the HTTP request of each API call. Pure: sends nothing. Names in paths are percent-encoded. An empty name, UID
// or selector value would make a different, wider request. If objects of the server supply the value (an owner, a
// claim, a Service), it is the server's mistake and Errc::decode. Everywhere else it is a bug in the caller and
// terminates the program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.hpp"
#include "k8s/objects.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

enum class DryRun { none, server };
enum class FieldValidation { warn, strict };  // strict in tests: a misspelt field in a request is then an error

struct WriteOptions {
  DryRun dry_run = DryRun::none;
  FieldValidation validation = FieldValidation::warn;
};

struct ListOptions {
  std::string field_selector;
  std::string label_selector;
  std::uint32_t limit = 0;  // 0 disables paging
  std::string continue_token;
  std::string ns{};  // empty: all namespaces
  // No resourceVersion is ever sent with a list: every list must return the most recent state.
};

struct WatchOptions {
  std::string field_selector;
  std::string resource_version;
  std::chrono::seconds timeout{290};
  std::string label_selector{};
  std::string ns{};  // empty: all namespaces
};

// Leases and ConfigMaps are listed in one namespace only, never in all.
enum class Resource { pods, nodes, pod_disruption_budgets, volume_attachments, leases, config_maps };

std::string percent_encode(std::string_view text);

http::Request get_node(std::string_view name);
http::Request list(Resource resource, const ListOptions& options);
http::Request watch(Resource resource, const WatchOptions& options);
// The body is a JSON merge patch.
http::Request patch_node(std::string_view name, std::string merge_patch, const WriteOptions& options);
// The body is a strategic merge patch: conditions are merged by type, {"$patch":"delete","type":…} removes one. Labels
// and annotations in the patch are applied, too. A spec in it is ignored.
http::Request patch_node_status(std::string_view name, std::string strategic_merge_patch, const WriteOptions& options);

struct DeleteOptions {
  std::string uid;                            // precondition; always set (P2 in docs/reliability.md)
  std::optional<std::int64_t> grace_seconds;  // unset: the pod's own grace period
  WriteOptions write;
  std::string resource_version{};  // another precondition, unless empty
};
http::Request evict(std::string_view ns, std::string_view pod, const DeleteOptions& options);
http::Request delete_pod(std::string_view ns, std::string_view pod, const DeleteOptions& options);
Result<http::Request> get_persistent_volume(std::string_view name);
Result<http::Request> get_persistent_volume_claim(std::string_view ns, std::string_view name);
Result<http::Request> get_namespace(std::string_view name);
Result<http::Request> get_service(std::string_view ns, std::string_view name);
Result<http::Request> get_daemon_set(std::string_view ns, std::string_view name);
// `resource` is "deployments", "replicasets" or "statefulsets".
Result<http::Request> get_workload(std::string_view resource, std::string_view ns, std::string_view name);
// For any resource that has a scale subresource: "apps.kruise.io/v1alpha1", "clonesets".
Result<http::Request> get_scale(std::string_view api_version, std::string_view resource, std::string_view ns,
                                std::string_view name);
// Gets the list of the resources of "apps/v1", "v1", …
Result<http::Request> discover(std::string_view api_version);

struct ResourceAttributes {
  std::string verb, group, resource, subresource, ns, name;
};
http::Request create_access_review(const ResourceAttributes& attributes);
http::Request create_self_review();

http::Request get_lease(std::string_view ns, std::string_view name);
http::Request create_lease(const Lease& lease, const WriteOptions& options);
// The body is a JSON merge patch. PUT is not used, because it would create a Lease that has been deleted.
http::Request patch_lease(std::string_view ns, std::string_view name, std::string merge_patch,
                          const WriteOptions& options);
// Deletes the Lease only in the state that was read: both UID and resourceVersion must be set.
http::Request delete_lease(std::string_view ns, std::string_view name, const DeleteOptions& options);
http::Request get_config_map(std::string_view ns, std::string_view name);
http::Request create_config_map(const ConfigMap& config_map, const WriteOptions& options);
// The body is a JSON merge patch.
http::Request patch_config_map(std::string_view ns, std::string_view name, std::string merge_patch,
                               const WriteOptions& options);
http::Request create_event(const NodeEvent& event, const WriteOptions& options);
// Records that an Event happened again. `count` is the total number so far, at least 2.
http::Request repeat_event(std::string_view ns, std::string_view name, std::int32_t count, WallTime last_observed,
                           const WriteOptions& options);

}  // namespace haulout::k8s
