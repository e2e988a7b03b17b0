#include "k8s/requests.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "base/ascii.hpp"

namespace haulout::k8s {
namespace {

// Terminates the program if the value is empty. With an empty value, a path would name a collection, a selector would
// select every unscheduled pod, and an eviction would affect any pod of that name.
std::string_view required(std::string_view value, std::string_view what) {
  if (!value.empty()) return value;
  std::fprintf(stderr, "bug: a Kubernetes request was built with an empty %.*s\n", static_cast<int>(what.size()),
               what.data());
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

// Returns "/namespaces/NS", or an empty string for all namespaces.
std::string scope(std::string_view ns) {
  return ns.empty() ? std::string() : "/namespaces/" + percent_encode(ns);
}

// Returns "/api/v1" or "/apis/policy/v1".
std::string group_of(const Api& api) {
  const bool core = api.group_version.find('/') == std::string_view::npos;
  return fmt::format("/{}/{}", core ? "api" : "apis", api.group_version);
}

std::string collection_path(const Api& api, std::string_view ns) {
  if (api.scope == Scope::one_namespace) required(ns, "namespace");
  return fmt::format("{}{}/{}", group_of(api), api.scope == Scope::cluster ? "" : scope(ns), api.plural);
}

std::string object_path(const Api& api, std::string_view ns, std::string_view name) {
  if (api.scope != Scope::cluster) required(ns, "namespace");
  return collection_path(api, ns) + "/" + percent_encode(required(name, fmt::format("{} name", api.kind)));
}

// A segment of a path whose value was read from an object of the API, and the text before it.
struct Segment {
  std::string_view before;
  std::string_view value;
  std::string_view what;
};

Result<std::string> path_of(std::initializer_list<Segment> segments) {
  std::string path;
  for (const Segment& segment : segments) {
    // Refuses "." and "..", which a proxy that normalises paths would turn into another path.
    if (segment.value.empty() || segment.value == "." || segment.value == "..")
      return Error(Errc::decode, fmt::format("an object of the cluster refers to the {} '{}', which is not a valid "
                                             "name ({}…); correct the reference in that object",
                                             segment.what, segment.value, path + std::string(segment.before)));
    path += segment.before;
    path += percent_encode(segment.value);
  }
  return path;
}

Result<std::string> group_path(std::string_view api_version) {
  const auto slash = api_version.find('/');
  if (slash == std::string_view::npos) return path_of({{"/api/", api_version, "API version"}});
  return path_of(
      {{"/apis/", api_version.substr(0, slash), "API group"}, {"/", api_version.substr(slash + 1), "API version"}});
}

http::Request request(std::string method, std::string target) {
  http::Request out;
  out.method = std::move(method);
  out.target = std::move(target);
  out.headers.set("Accept", "application/json");
  return out;
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

// Builds a PATCH. A patch without a precondition that is sent twice could undo a change that was made in between. So it
// is marked as not repeatable, and the caller reads the object before it repeats the patch.
http::Request patch_at(std::string path, std::string_view type, std::string body, const WriteOptions& options) {
  Query query(std::move(path));
  query.add("fieldManager", field_manager);
  auto out = request("PATCH", add_write_options(query, options).target());
  out.repeatable = false;
  return with_body(std::move(out), type, std::move(body));
}

// The API server takes the dry run of an eviction from the query. It reads the query of a DELETE only if the request
// has no body, so the body of a DELETE must contain `dryRun`.
std::string encode_delete_options(const DeleteOptions& options, DryRun dry_run) {
  const std::string_view dry = dry_run == DryRun::server ? R"("dryRun":["All"],)" : "";
  const auto grace = options.grace_seconds ? fmt::format(R"("gracePeriodSeconds":{},)", *options.grace_seconds) : "";
  const auto version = options.resource_version.empty()
                           ? std::string()
                           : fmt::format(R"(,"resourceVersion":{})", codec::quoted(options.resource_version));
  return fmt::format(R"({{"apiVersion":"v1","kind":"DeleteOptions",{}{}"preconditions":{{"uid":{}{}}}}})", dry, grace,
                     codec::quoted(options.uid), version);
}

std::string encode_eviction(std::string_view ns, std::string_view pod, const DeleteOptions& options) {
  return fmt::format(
      R"({{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":{},"namespace":{}}},"deleteOptions":{}}})",
      codec::quoted(pod), codec::quoted(ns), encode_delete_options(options, DryRun::none));
}

}  // namespace

std::string percent_encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool unreserved = is_alphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~';
    if (unreserved) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

http::Request get(const Api& api, std::string_view ns, std::string_view name) {
  return request("GET", object_path(api, ns, name));
}

Result<http::Request> get_of_object(const Api& api, std::string_view ns, std::string_view name) {
  const std::string group = group_of(api), collection = fmt::format("/{}/", api.plural), all = group + collection;
  auto path = api.scope == Scope::cluster
                  ? path_of({{all, name, api.kind}})
                  : path_of({{group + "/namespaces/", ns, "namespace"}, {collection, name, api.kind}});
  if (!path) return std::move(path).error();
  return request("GET", *std::move(path));
}

Result<http::Request> get_workload(std::string_view resource, std::string_view ns, std::string_view name) {
  auto path =
      path_of({{"/apis/apps/v1/namespaces/", ns, "namespace"}, {"/", resource, "resource"}, {"/", name, "workload"}});
  if (!path) return std::move(path).error();
  return request("GET", *std::move(path));
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

http::Request list(const Api& api, const ListOptions& options) {
  Query query(collection_path(api, options.ns));
  query.add_if(!options.field_selector.empty(), "fieldSelector", valued(options.field_selector))
      .add_if(!options.label_selector.empty(), "labelSelector", options.label_selector)
      .add_if(options.limit > 0, "limit", std::to_string(options.limit))
      .add_if(!options.continue_token.empty(), "continue", options.continue_token);
  return request("GET", query.target());
}

http::Request watch(const Api& api, const WatchOptions& options) {
  Query query(collection_path(api, options.ns));
  query.add("watch", "1")
      .add_if(!options.field_selector.empty(), "fieldSelector", valued(options.field_selector))
      .add_if(!options.label_selector.empty(), "labelSelector", options.label_selector)
      .add("resourceVersion", required(options.resource_version, "resourceVersion of a watch"))
      .add("allowWatchBookmarks", "true")
      .add("timeoutSeconds", std::to_string(options.timeout.count()));
  return request("GET", query.target());
}

// The request is repeatable, because each object has a unique name: a second POST finds the object of the first one and
// changes nothing.
http::Request create(const Api& api, std::string_view ns, std::string_view name, std::string body,
                     const WriteOptions& options) {
  required(name, fmt::format("{} name", api.kind));
  Query query(collection_path(api, ns));
  query.add("fieldManager", field_manager);
  return with_body(request("POST", add_write_options(query, options).target()), "application/json", std::move(body));
}

http::Request patch(const Api& api, std::string_view ns, std::string_view name, std::string merge_patch,
                    const WriteOptions& options) {
  return patch_at(object_path(api, ns, name), "application/merge-patch+json", std::move(merge_patch), options);
}

http::Request remove(const Api& api, std::string_view ns, std::string_view name, const DeleteOptions& options) {
  required(options.uid, fmt::format("UID of a {} to delete", api.kind));
  if (api.delete_as_read)
    required(options.resource_version, fmt::format("resourceVersion of a {} to delete", api.kind));
  return with_body(request("DELETE", object_path(api, ns, name)), "application/json",
                   encode_delete_options(options, options.write.dry_run));
}

http::Request patch_node_status(std::string_view name, std::string strategic_merge_patch, const WriteOptions& options) {
  return patch_at(object_path(Kind<Node>::api, {}, name) + "/status", "application/strategic-merge-patch+json",
                  std::move(strategic_merge_patch), options);
}

// The UID precondition makes the request repeatable: a second one finds the same pod terminating, or finds another pod
// and fails.
http::Request evict(std::string_view ns, std::string_view pod, const DeleteOptions& options) {
  required(options.uid, "UID of a pod to evict");
  Query query(object_path(Kind<Pod>::api, ns, pod) + "/eviction");
  return with_body(request("POST", add_write_options(query, options.write).target()), "application/json",
                   encode_eviction(ns, pod, options));
}

http::Request create_access_review(const ResourceAttributes& attributes) {
  required(attributes.verb, "verb of an access review");
  codec::Writer asked;
  asked.text("verb", attributes.verb)
      .text_if_any("group", attributes.group)
      .text_if_any("resource", attributes.resource)
      .text_if_any("subresource", attributes.subresource)
      .text_if_any("namespace", attributes.ns)
      .text_if_any("name", attributes.name);
  return with_body(request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"), "application/json",
                   codec::Writer()
                       .text("apiVersion", "authorization.k8s.io/v1")
                       .text("kind", "SelfSubjectAccessReview")
                       .object("spec", codec::Writer().object("resourceAttributes", asked))
                       .str());
}

http::Request create_self_review() {
  return with_body(
      request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews"), "application/json",
      codec::Writer().text("apiVersion", "authentication.k8s.io/v1").text("kind", "SelfSubjectReview").str());
}

// The request is repeatable, because the count is absolute, not an increment.
http::Request repeat_event(std::string_view ns, std::string_view name, std::int32_t count, WallTime last_observed,
                           const WriteOptions& options) {
  auto out = patch<NodeEvent>(ns, name, Kind<NodeEvent>::encode_series(count, last_observed), options);
  out.repeatable = true;
  return out;
}

}  // namespace haulout::k8s
