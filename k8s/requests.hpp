// Pure builders: one HTTP request per verb. Names go into paths percent-encoded; nothing is sent here. An empty name,
// UID or selector value would make another, wider request of it: that is a bug in the caller and terminates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.hpp"
#include "k8s/objects.hpp"

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
  // resourceVersion is never sent with a list: every list here must be most recent.
};

struct WatchOptions {
  std::string field_selector;
  std::string resource_version;
  std::chrono::seconds timeout{290};
};

enum class Resource { pods, nodes, pod_disruption_budgets };

std::string percent_encode(std::string_view text);

http::Request get_node(std::string_view name);
http::Request list(Resource resource, const ListOptions& options);
http::Request watch(Resource resource, const WatchOptions& options);
// JSON merge patch.
http::Request patch_node(std::string_view name, std::string merge_patch, const WriteOptions& options);

struct DeleteOptions {
  std::string uid;                            // precondition, always set (P2)
  std::optional<std::int64_t> grace_seconds;  // unset: the pod's own
  WriteOptions write;
};
http::Request evict(std::string_view ns, std::string_view pod, const DeleteOptions& options);
http::Request delete_pod(std::string_view ns, std::string_view pod, const DeleteOptions& options);
http::Request get_daemon_set(std::string_view ns, std::string_view name);

struct ResourceAttributes {
  std::string verb, group, resource, subresource, ns, name;
};
http::Request create_access_review(const ResourceAttributes& attributes);

}  // namespace haulout::k8s
