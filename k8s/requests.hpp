// Builds the HTTP request of each API call. Pure: sends nothing. Names in paths are percent-encoded. An empty name, UID
// or selector value would make a different, wider request. If the value was read from an object of the API (an owner, a
// claim, a Service), the function fails with Errc::decode. If the caller supplied it, that is a bug, and the program
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
enum class FieldValidation { warn, strict };  // tests use strict: a misspelt field in a request is then an error

struct WriteOptions {
  DryRun dry_run = DryRun::none;
  FieldValidation validation = FieldValidation::warn;
};

// Value of ListOptions::limit for Client::list() that stands for the page size of the client.
inline constexpr std::uint32_t usual_page = 0xffff'ffff;

struct ListOptions {
  std::string field_selector{};
  std::string label_selector{};
  std::uint32_t limit = 0;  // 0 disables paging
  std::string continue_token{};
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

std::string percent_encode(std::string_view text);

struct DeleteOptions {
  std::string uid;                            // precondition; always set (P2 in docs/reliability.md)
  std::optional<std::int64_t> grace_seconds;  // unset: the pod's own grace period
  WriteOptions write;
  std::string resource_version{};  // another precondition, unless empty; required for a Lease
};

// Requests for the objects of any kind. `ns` is empty for kinds without namespace.
http::Request get(const Api& api, std::string_view ns, std::string_view name);
Result<http::Request> get_of_object(const Api& api, std::string_view ns, std::string_view name);
http::Request list(const Api& api, const ListOptions& options);
http::Request watch(const Api& api, const WatchOptions& options);
http::Request create(const Api& api, std::string_view ns, std::string_view name, std::string body,
                     const WriteOptions& options);
// The body is a JSON merge patch. PUT is not used, because it would create an object that has been deleted.
http::Request patch(const Api& api, std::string_view ns, std::string_view name, std::string merge_patch,
                    const WriteOptions& options);
// Deletes the object only if it has the UID of the options, and their resourceVersion if that is set.
http::Request remove(const Api& api, std::string_view ns, std::string_view name, const DeleteOptions& options);

// The same requests with the kind as a template parameter. get() returns a Result if the names of the kind come from
// other objects (Names::of_objects).
template <class T>
auto get(std::string_view ns, std::string_view name) {
  if constexpr (Kind<T>::api.names == Names::ours) {
    return get(Kind<T>::api, ns, name);
  } else {
    return get_of_object(Kind<T>::api, ns, name);
  }
}
template <class T>
auto get(std::string_view name) {
  static_assert(Kind<T>::api.scope == Scope::cluster);
  return get<T>({}, name);
}
template <class T>
http::Request list(const ListOptions& options) {
  return list(Kind<T>::api, options);
}
template <class T>
http::Request watch(const WatchOptions& options) {
  return watch(Kind<T>::api, options);
}
template <class T>
http::Request create(const T& object, const WriteOptions& options) {
  return create(Kind<T>::api, object.ns, object.name, Kind<T>::encode(object), options);
}
template <class T>
http::Request patch(std::string_view ns, std::string_view name, std::string merge_patch, const WriteOptions& options) {
  return patch(Kind<T>::api, ns, name, std::move(merge_patch), options);
}
template <class T>
http::Request remove(std::string_view ns, std::string_view name, const DeleteOptions& options) {
  return remove(Kind<T>::api, ns, name, options);
}

// The body is a strategic merge patch: conditions are merged by type, and {"$patch":"delete","type":…} removes one. The
// server also applies labels and annotations in the patch, and ignores a spec in it.
http::Request patch_node_status(std::string_view name, std::string strategic_merge_patch, const WriteOptions& options);
http::Request evict(std::string_view ns, std::string_view pod, const DeleteOptions& options);
// `resource` is "deployments", "replicasets" or "statefulsets".
Result<http::Request> get_workload(std::string_view resource, std::string_view ns, std::string_view name);
// Gets the scale subresource of any resource that has one, for example `api_version` "apps.kruise.io/v1alpha1" and
// `resource` "clonesets".
Result<http::Request> get_scale(std::string_view api_version, std::string_view resource, std::string_view ns,
                                std::string_view name);
// Gets the list of the resources of a group and version, such as "apps/v1" or "v1".
Result<http::Request> discover(std::string_view api_version);
// Records that an Event happened again. `count` is the total number so far, at least 2.
http::Request repeat_event(std::string_view ns, std::string_view name, std::int32_t count, WallTime last_observed,
                           const WriteOptions& options);

struct ResourceAttributes {
  std::string verb, group, resource, subresource, ns, name;
};
http::Request create_access_review(const ResourceAttributes& attributes);
http::Request create_self_review();

}  // namespace haulout::k8s
