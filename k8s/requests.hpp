// Pure builders: one HTTP request per verb. Names go into paths percent-encoded; nothing is sent here. An empty name,
// UID or selector value would make another, wider request of it. Where a server's objects say what is asked for next
// (an owner, a claim, a Service), it is their mistake and Errc::decode; everywhere else it is a bug in the caller and
// terminates.
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
enum class FieldValidation { warn, strict };  // strict in tests: a misspelt field of ours is then an error

struct WriteOptions {
  DryRun dry_run = DryRun::none;
  FieldValidation validation = FieldValidation::warn;
};

struct ListOptions {
  std::string field_selector;
  std::string label_selector;
  std::uint32_t limit = 0;  // 0: no paging
  std::string continue_token;
  std::string ns{};  // empty: all namespaces
  // resourceVersion is never sent with a list: every list here must be most recent.
};

struct WatchOptions {
  std::string field_selector;
  std::string resource_version;
  std::chrono::seconds timeout{290};
  std::string label_selector{};
  std::string ns{};  // empty: all namespaces
};

// Leases and ConfigMaps are never asked of all namespaces at once.
enum class Resource { pods, nodes, pod_disruption_budgets, volume_attachments, leases, config_maps };

std::string percent_encode(std::string_view text);

http::Request get_node(std::string_view name);
http::Request list(Resource resource, const ListOptions& options);
http::Request watch(Resource resource, const WatchOptions& options);
// JSON merge patch.
http::Request patch_node(std::string_view name, std::string merge_patch, const WriteOptions& options);
// Strategic merge patch: conditions are merged by type, {"$patch":"delete","type":…} removes one. Labels and
// annotations of the patch are taken, too; its spec is ignored.
http::Request patch_node_status(std::string_view name, std::string strategic_merge_patch, const WriteOptions& options);

struct DeleteOptions {
  std::string uid;                            // precondition, always set (P2)
  std::optional<std::int64_t> grace_seconds;  // unset: the pod's own
  WriteOptions write;
  std::string resource_version{};  // precondition, too, unless empty
};
http::Request evict(std::string_view ns, std::string_view pod, const DeleteOptions& options);
http::Request delete_pod(std::string_view ns, std::string_view pod, const DeleteOptions& options);
Result<http::Request> get_persistent_volume(std::string_view name);
Result<http::Request> get_persistent_volume_claim(std::string_view ns, std::string_view name);
Result<http::Request> get_namespace(std::string_view name);
Result<http::Request> get_service(std::string_view ns, std::string_view name);
Result<http::Request> get_daemon_set(std::string_view ns, std::string_view name);
// "deployments", "replicasets" or "statefulsets".
Result<http::Request> get_workload(std::string_view resource, std::string_view ns, std::string_view name);
// Of any resource that has a scale: "apps.kruise.io/v1alpha1", "clonesets".
Result<http::Request> get_scale(std::string_view api_version, std::string_view resource, std::string_view ns,
                                std::string_view name);
// The resources of "apps/v1", "v1", …
Result<http::Request> discover(std::string_view api_version);

struct ResourceAttributes {
  std::string verb, group, resource, subresource, ns, name;
};
http::Request create_access_review(const ResourceAttributes& attributes);
http::Request create_self_review();

http::Request get_lease(std::string_view ns, std::string_view name);
http::Request create_lease(const Lease& lease, const WriteOptions& options);
// JSON merge patch. There is no PUT: it creates a Lease that has gone.
http::Request patch_lease(std::string_view ns, std::string_view name, std::string merge_patch,
                          const WriteOptions& options);
// Of exactly the state that was read: both UID and resourceVersion must be set.
http::Request delete_lease(std::string_view ns, std::string_view name, const DeleteOptions& options);
http::Request get_config_map(std::string_view ns, std::string_view name);
http::Request create_config_map(const ConfigMap& config_map, const WriteOptions& options);
// JSON merge patch.
http::Request patch_config_map(std::string_view ns, std::string_view name, std::string merge_patch,
                               const WriteOptions& options);
http::Request create_event(const NodeEvent& event, const WriteOptions& options);
// It happened again: so many times by now, at least 2.
http::Request repeat_event(std::string_view ns, std::string_view name, std::int32_t count, WallTime last_observed,
                           const WriteOptions& options);

}  // namespace haulout::k8s
