// EvictionRequests and Evictions of lifecycle.k8s.io/v1alpha1 (KEP-4563): the structs, their place in the API, their
// decoders and encoders. Pure.
//
// A requester, such as this drain, creates an EvictionRequest for one instance of a pod. A controller of Kubernetes
// makes an Eviction of all requests for the pod, and calls the pod's responders one after the other. Each reports in
// the Eviction by times and a message that it works. The controller copies the result to the requests. A requester that
// no longer wants the eviction sets `intent` to Withdrawn.
#pragma once

#include "k8s/kind.hpp"

namespace haulout::k8s {

// The requester in all EvictionRequests of Haulout. The controller sets it as a label of the Evictions that follow.
inline constexpr std::string_view eviction_requester = "haulout.dev/drain";
// The label of Haulout's EvictionRequests that has the UID of the Node on which the pod runs.
inline constexpr std::string_view request_node_label = "haulout.dev/node-uid";
// The responder that Kubernetes adds to all others, with the lowest priority. It calls the ordinary eviction API.
inline constexpr std::string_view imperative_evictor = "imperative-eviction.k8s.io/evictor";

inline constexpr std::string_view intent_eviction = "Eviction";
inline constexpr std::string_view intent_withdrawn = "Withdrawn";

struct EvictionRequest {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> labels;  // only those of Haulout
  std::string pod_name;
  std::string pod_uid;
  std::string requester;
  std::string intent;
  std::optional<WallTime> created;
  bool terminating = false;
  std::int64_t generation = 0;
  std::int64_t observed_generation = 0;  // 0 if the controller has not seen the request
  bool evicted = false;                  // condition TargetEvicted is True
  bool failed = false;                   // condition Failed is True
  std::string why_failed;                // "reason: message"

  bool is_ours() const { return requester == eviction_requester; }
  // Returns true if the request asks for the eviction of the pod.
  bool wants_eviction() const { return intent == intent_eviction; }
  // Returns true if the conditions are about the current intent, not about an earlier one.
  bool is_observed() const { return observed_generation > 0 && observed_generation >= generation; }
  std::string key() const { return ns + "/" + name; }
  bool operator==(const EvictionRequest&) const = default;
};

// Returns the name of Haulout's request for a pod. One pod has at most one.
inline std::string request_name(std::string_view pod_uid) {
  return "haulout-" + std::string(pod_uid);
}

namespace codec::eviction {

// Messages longer than this are cut.
inline constexpr std::size_t longest_message = 400;

inline std::string pod_of(const Object& spec, std::string_view key) {
  return spec.object("target").object("pod").string(key);
}

inline std::string failure(const Object& condition) {
  const std::string reason = condition.string("reason");
  const std::string message = condition.string("message");
  return cut(reason.empty() || message.empty() ? reason + message : reason + ": " + message, longest_message);
}

}  // namespace codec::eviction

template <>
struct Kind<EvictionRequest> {
  static constexpr std::string_view name = "EvictionRequest";
  static constexpr Api api{"lifecycle.k8s.io/v1alpha1", "evictionrequests", Scope::namespaced,
                           Names::of_objects,           "EvictionRequest",  "EvictionRequests"};
  static constexpr ListBudget budget{10'000, megabytes(64), megabytes(16), kilobytes(2)};
  static constexpr std::array<std::string_view, 2> dropped = {"managedFields", "annotations"};
  static constexpr codec::Room labels{16, 4 * 1024, "haulout.dev/"};

  static void read(const codec::Object& json, EvictionRequest& request) {
    const auto metadata = json.object("metadata");
    codec::read_identity(metadata, request);
    request.labels = metadata.strings("labels", labels);
    request.created = metadata.time("creationTimestamp");
    request.terminating = metadata.has("deletionTimestamp");
    request.generation = metadata.integer("generation").value_or(0);
    const auto spec = json.object("spec");
    request.pod_name = codec::eviction::pod_of(spec, "name");
    request.pod_uid = codec::eviction::pod_of(spec, "uid");
    request.requester = spec.string("requester");
    request.intent = spec.string("intent");
    const auto status = json.object("status");
    request.observed_generation = status.integer("observedGeneration").value_or(0);
    request.evicted = codec::condition_true(status, "TargetEvicted");
    request.failed = codec::condition_true(status, "Failed");
    status.each("conditions", [&](const codec::Object& condition) {
      if (condition.string("type") == "Failed" && request.failed)
        request.why_failed = codec::eviction::failure(condition);
    });
  }
  // The pod owns the request, so that the garbage collector deletes the request when the pod is gone.
  static std::string encode(const EvictionRequest& request) {
    codec::Writer owner;
    owner.text("apiVersion", "v1").text("kind", "Pod").text("name", request.pod_name).text("uid", request.pod_uid);
    codec::Writer metadata;
    metadata.text("name", request.name).text("namespace", request.ns).texts_if_any("labels", request.labels);
    metadata.raw("ownerReferences", "[" + owner.str() + "]");
    codec::Writer pod;
    pod.text("name", request.pod_name).text("uid", request.pod_uid);
    codec::Writer spec;
    spec.object("target", codec::Writer().object("pod", pod));
    spec.text("requester", request.requester).text("intent", request.intent);
    return codec::Writer()
        .text("apiVersion", api.group_version)
        .text("kind", name)
        .object("metadata", metadata)
        .object("spec", spec)
        .str();
  }
  static std::size_t text_in(const EvictionRequest& request) {
    return text_of(request.labels) + request.requester.size() + request.why_failed.size();
  }
};

// Returns the merge patch that sets the intent of the request, if it is still in the state that was read.
inline std::string intent_patch(const EvictionRequest& request, std::string_view intent) {
  codec::Writer metadata;
  metadata.text("uid", request.uid).text("resourceVersion", request.resource_version);
  return codec::Writer().object("metadata", metadata).object("spec", codec::Writer().text("intent", intent)).str();
}

// The object Eviction of lifecycle.k8s.io, in which the responders report. It has another name here, because an
// Eviction of policy/v1 is what the drain sends to evict a pod.
struct EvictionProcess {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string pod_uid;
  std::optional<WallTime> created;
  bool ended = false;  // condition TargetEvicted or Failed is True, or the object is being deleted
  // The responder whose turn it is: the only one whose state is Active. Empty if there is none.
  std::string active;
  std::optional<WallTime> start;      // when its turn began
  std::optional<WallTime> heartbeat;  // its last sign of life
  std::string message;                // what it says

  bool operator==(const EvictionProcess&) const = default;
};

template <>
struct Kind<EvictionProcess> {
  static constexpr std::string_view name = "Eviction";
  static constexpr Api api{"lifecycle.k8s.io/v1alpha1", "evictions", Scope::namespaced,
                           Names::of_objects,           "Eviction",  "Evictions"};
  static constexpr ListBudget budget{10'000, megabytes(64), megabytes(16), kilobytes(2)};
  static constexpr std::array<std::string_view, 3> dropped = {"managedFields", "annotations", "labels"};

  static void read(const codec::Object& json, EvictionProcess& process) {
    const auto metadata = json.object("metadata");
    codec::read_identity(metadata, process);
    process.created = metadata.time("creationTimestamp");
    process.pod_uid = codec::eviction::pod_of(json.object("spec"), "uid");
    const auto status = json.object("status");
    process.ended = metadata.has("deletionTimestamp") || codec::condition_true(status, "TargetEvicted") ||
                    codec::condition_true(status, "Failed");
    status.each("targetResponders", [&](const codec::Object& responder) {
      if (responder.string("state") == "Active") process.active = responder.string("name");
    });
    status.each("responders", [&](const codec::Object& responder) {
      if (process.active.empty() || responder.string("name") != process.active) return;
      process.start = responder.time("startTime");
      process.heartbeat = responder.time("heartbeatTime");
      process.message = codec::cut(responder.string("message"), codec::eviction::longest_message);
    });
  }
  static std::size_t text_in(const EvictionProcess& process) { return process.active.size() + process.message.size(); }
};

}  // namespace haulout::k8s
