#include "k8s/requests.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "k8s/codec_requests.hpp"

namespace haulout::k8s {
namespace {

constexpr std::string_view in_namespace = "/api/v1/namespaces/";

// Terminates the program if the value is empty. Without it, a path would name a collection, a selector would select
// every unscheduled pod, and an eviction would affect any pod of that name.
std::string_view required(std::string_view value, const char* what) {
  if (!value.empty()) return value;
  std::fprintf(stderr, "bug: a Kubernetes request was built with an empty %s\n", what);
  std::abort();
}

std::string_view valued(std::string_view selector) {
  if (selector.ends_with('=')) required("", "field selector value");
  return selector;
}

class Query {
 public:
  explicit Query(std::string path) : target_(std::move(path)) {}
  Query& add(std::string_view key, std::string_view value) {
    target_ += first_ ? '?' : '&';
    first_ = false;
    target_ += key;
    target_ += '=';
    target_ += percent_encode(value);
    return *this;
  }
  Query& add_if(bool wanted, std::string_view key, std::string_view value) { return wanted ? add(key, value) : *this; }
  std::string target() const { return target_; }

 private:
  std::string target_;
  bool first_ = true;
};

std::string node_path(std::string_view name) {
  return "/api/v1/nodes/" + percent_encode(required(name, "Node name"));
}

std::string pod_path(std::string_view ns, std::string_view pod) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", percent_encode(required(ns, "namespace")),
                     percent_encode(required(pod, "Pod name")));
}

// Returns "/namespaces/NS", or an empty string for all namespaces.
std::string scope(std::string_view ns) {
  return ns.empty() ? std::string() : "/namespaces/" + percent_encode(ns);
}

std::string collection_path(Resource resource, std::string_view ns) {
  switch (resource) {
    case Resource::pods: return "/api/v1" + scope(ns) + "/pods";
    case Resource::nodes: return "/api/v1/nodes";
    case Resource::pod_disruption_budgets: return "/apis/policy/v1" + scope(ns) + "/poddisruptionbudgets";
    case Resource::volume_attachments: return "/apis/storage.k8s.io/v1/volumeattachments";
    case Resource::leases: return "/apis/coordination.k8s.io/v1" + scope(required(ns, "namespace")) + "/leases";
    case Resource::config_maps: return "/api/v1" + scope(required(ns, "namespace")) + "/configmaps";
  }
  std::abort();
}

std::string object_path(Resource resource, std::string_view ns, std::string_view name, const char* what) {
  return collection_path(resource, ns) + "/" + percent_encode(required(name, what));
}

std::string events_path(std::string_view ns) {
  return "/apis/events.k8s.io/v1" + scope(required(ns, "namespace")) + "/events";
}

// A segment of a path whose value comes from an object of the server, and the text before it.
struct Segment {
  std::string_view before;
  std::string_view value;
  std::string_view what;
};

Result<std::string> path_of(std::initializer_list<Segment> segments) {
  std::string path;
  for (const Segment& segment : segments) {
    // A proxy that normalises paths would turn "." and ".." into another path.
    if (segment.value.empty() || segment.value == "." || segment.value == "..")
      return Error(Errc::decode, fmt::format("an object of the server has '{}' where a name of a {} is expected ({} …)",
                                             segment.what, segment.value, path.empty() ? segment.before : path));
    path += segment.before;
    path += percent_encode(segment.value);
  }
  return path;
}

Result<std::string> group_path(std::string_view api_version) {
  const auto slash = api_version.find('/');
  if (slash == std::string_view::npos) return path_of({{"/api/", api_version, "API version"}});
  return path_of({{"/apis/", api_version.substr(0, slash), "API group"},
                  {"/", api_version.substr(slash + 1), "version of an API group"}});
}

http::Request request(std::string method, std::string target) {
  http::Request out;
  out.method = std::move(method);
  out.target = std::move(target);
  out.headers.set("Accept", "application/json");
  return out;
}

Result<http::Request> get_at(std::initializer_list<Segment> segments) {
  auto path = path_of(segments);
  if (!path) return std::move(path).error();
  return request("GET", *std::move(path));
}

http::Request with_body(http::Request out, std::string_view type, std::string body) {
  out.headers.set("Content-Type", type);
  out.body = std::move(body);
  return out;
}

Query& add_write_options(Query& query, const WriteOptions& options) {
  return query.add_if(options.dry_run == DryRun::server, "dryRun", "All")
      .add_if(options.validation == FieldValidation::strict, "fieldValidation", "Strict");
}

// An unguarded patch that is sent twice could undo a change that was made in between. So it is marked as not
// repeatable, and the caller reads before it repeats.
http::Request patch(std::string path, std::string_view type, std::string body, const WriteOptions& options) {
  Query query(std::move(path));
  query.add("fieldManager", field_manager);
  auto out = request("PATCH", add_write_options(query, options).target());
  out.repeatable = false;
  return with_body(std::move(out), type, std::move(body));
}

// Each object has a unique name. So a second POST finds the object of the first one and changes nothing.
http::Request create(std::string path, std::string body, const WriteOptions& options) {
  Query query(std::move(path));
  query.add("fieldManager", field_manager);
  return with_body(request("POST", add_write_options(query, options).target()), "application/json", std::move(body));
}

}  // namespace

std::string percent_encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool unreserved = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
                            c == '.' || c == '_' || c == '~';
    if (unreserved) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

http::Request get_node(std::string_view name) {
  return request("GET", node_path(name));
}

Result<http::Request> get_persistent_volume(std::string_view name) {
  return get_at({{"/api/v1/persistentvolumes/", name, "PersistentVolume"}});
}

Result<http::Request> get_persistent_volume_claim(std::string_view ns, std::string_view name) {
  return get_at({{in_namespace, ns, "namespace"}, {"/persistentvolumeclaims/", name, "PersistentVolumeClaim"}});
}

Result<http::Request> get_namespace(std::string_view name) {
  return get_at({{in_namespace, name, "namespace"}});
}

Result<http::Request> get_service(std::string_view ns, std::string_view name) {
  return get_at({{in_namespace, ns, "namespace"}, {"/services/", name, "Service"}});
}

Result<http::Request> get_daemon_set(std::string_view ns, std::string_view name) {
  return get_workload("daemonsets", ns, name);
}

Result<http::Request> get_workload(std::string_view resource, std::string_view ns, std::string_view name) {
  return get_at({{"/apis/apps/v1/namespaces/", ns, "namespace"}, {"/", resource, "resource"}, {"/", name, "workload"}});
}

Result<http::Request> get_scale(std::string_view api_version, std::string_view resource, std::string_view ns,
                                std::string_view name) {
  const auto group = group_path(api_version);
  if (!group) return group.error();
  auto path = path_of({{"/namespaces/", ns, "namespace"}, {"/", resource, "resource"}, {"/", name, "workload"}});
  if (!path) return std::move(path).error();
  return request("GET", *group + *path + "/scale");
}

Result<http::Request> discover(std::string_view api_version) {
  auto path = group_path(api_version);
  if (!path) return std::move(path).error();
  return request("GET", *std::move(path));
}

http::Request list(Resource resource, const ListOptions& options) {
  Query query(collection_path(resource, options.ns));
  query.add_if(!options.field_selector.empty(), "fieldSelector", valued(options.field_selector))
      .add_if(!options.label_selector.empty(), "labelSelector", options.label_selector)
      .add_if(options.limit > 0, "limit", std::to_string(options.limit))
      .add_if(!options.continue_token.empty(), "continue", options.continue_token);
  return request("GET", query.target());
}

http::Request watch(Resource resource, const WatchOptions& options) {
  Query query(collection_path(resource, options.ns));
  query.add("watch", "1")
      .add_if(!options.field_selector.empty(), "fieldSelector", valued(options.field_selector))
      .add_if(!options.label_selector.empty(), "labelSelector", options.label_selector)
      .add("resourceVersion", required(options.resource_version, "resourceVersion of a watch"))
      .add("allowWatchBookmarks", "true")
      .add("timeoutSeconds", std::to_string(options.timeout.count()));
  return request("GET", query.target());
}

http::Request patch_node(std::string_view name, std::string merge_patch, const WriteOptions& options) {
  return patch(node_path(name), "application/merge-patch+json", std::move(merge_patch), options);
}

http::Request patch_node_status(std::string_view name, std::string strategic_merge_patch, const WriteOptions& options) {
  return patch(node_path(name) + "/status", "application/strategic-merge-patch+json", std::move(strategic_merge_patch),
               options);
}

// The UID precondition makes the request repeatable: a second one finds the same pod terminating, or finds another pod
// and fails.
http::Request evict(std::string_view ns, std::string_view pod, const DeleteOptions& options) {
  required(options.uid, "UID of a pod to evict");
  Query query(pod_path(ns, pod) + "/eviction");
  return with_body(request("POST", add_write_options(query, options.write).target()), "application/json",
                   encode_eviction(ns, pod, options));
}

http::Request delete_pod(std::string_view ns, std::string_view pod, const DeleteOptions& options) {
  required(options.uid, "UID of a pod to delete");
  return with_body(request("DELETE", pod_path(ns, pod)), "application/json",
                   encode_delete_options(options, options.write.dry_run));
}

http::Request create_access_review(const ResourceAttributes& attributes) {
  required(attributes.verb, "verb of an access review");
  return with_body(request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"), "application/json",
                   encode_access_review(attributes));
}

http::Request create_self_review() {
  return with_body(request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews"), "application/json",
                   encode_self_review());
}

http::Request get_lease(std::string_view ns, std::string_view name) {
  return request("GET", object_path(Resource::leases, ns, name, "Lease name"));
}

http::Request create_lease(const Lease& lease, const WriteOptions& options) {
  required(lease.name, "Lease name");
  return create(collection_path(Resource::leases, lease.ns), encode_lease(lease), options);
}

http::Request patch_lease(std::string_view ns, std::string_view name, std::string merge_patch,
                          const WriteOptions& options) {
  return patch(object_path(Resource::leases, ns, name, "Lease name"), "application/merge-patch+json",
               std::move(merge_patch), options);
}

http::Request delete_lease(std::string_view ns, std::string_view name, const DeleteOptions& options) {
  required(options.uid, "UID of a Lease to delete");
  required(options.resource_version, "resourceVersion of a Lease to delete");
  return with_body(request("DELETE", object_path(Resource::leases, ns, name, "Lease name")), "application/json",
                   encode_delete_options(options, options.write.dry_run));
}

http::Request get_config_map(std::string_view ns, std::string_view name) {
  return request("GET", object_path(Resource::config_maps, ns, name, "ConfigMap name"));
}

http::Request create_config_map(const ConfigMap& config_map, const WriteOptions& options) {
  required(config_map.name, "ConfigMap name");
  return create(collection_path(Resource::config_maps, config_map.ns), encode_config_map(config_map), options);
}

http::Request patch_config_map(std::string_view ns, std::string_view name, std::string merge_patch,
                               const WriteOptions& options) {
  return patch(object_path(Resource::config_maps, ns, name, "ConfigMap name"), "application/merge-patch+json",
               std::move(merge_patch), options);
}

http::Request create_event(const NodeEvent& event, const WriteOptions& options) {
  required(event.name, "Event name");
  return create(events_path(event.ns), encode_event(event), options);
}

// Repeatable, because the count is absolute, not an increment.
http::Request repeat_event(std::string_view ns, std::string_view name, std::int32_t count, WallTime last_observed,
                           const WriteOptions& options) {
  auto out = patch(events_path(ns) + "/" + percent_encode(required(name, "Event name")), "application/merge-patch+json",
                   encode_event_series(count, last_observed), options);
  out.repeatable = true;
  return out;
}

}  // namespace haulout::k8s
