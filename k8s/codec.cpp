#include "k8s/codec.hpp"

#include <fmt/format.h>

#include "k8s/codec_json.hpp"
#include "k8s/codec_objects.hpp"

namespace haulout::k8s {
namespace {

using codec::Json;
using codec::Object;
using codec::Problem;

template <class T>
std::string display_name(const T& object) {
  if constexpr (requires { object.ns; }) {
    return object.ns + "/" + object.name;
  } else {
    return object.name;
  }
}

// The API server accepts no such name, because in a URL it would denote another path.
bool is_path(std::string_view name) {
  return name == "." || name == ".." || name.find('/') != std::string_view::npos;
}

// Checks the fields that every object of a server has. A resourceVersion is required only if the type has the field.
template <class T>
void check_identity(const T& object, Problem& problem) {
  if (object.name.empty()) return problem.note("metadata.name is missing");
  if (object.uid.empty()) return problem.note("metadata.uid is missing");
  if constexpr (requires { object.resource_version; }) {
    if (object.resource_version.empty()) return problem.note("metadata.resourceVersion is missing");
  }
  if constexpr (requires { object.ns; }) {
    if (object.ns.empty()) return problem.note("metadata.namespace is missing");
    if (is_path(object.ns)) return problem.note("metadata.namespace is not a valid name");
  }
  if (is_path(object.name)) problem.note("metadata.name is not a valid name");
}

// Items of a list have no `kind`. If an object has one, it must be the expected kind.
template <class T>
Result<T> decode_object(const Json& json) {
  constexpr auto kind = codec::kind_of<T>;
  if (!json.is_object() || json.get_object().contains("kind")) {
    const auto checked = codec::check_kind(json, kind);
    if (!checked) return checked.error();
  }
  T object;
  Problem problem;
  codec::read(Object(json, kind, problem), object);
  check_identity(object, problem);
  if (problem.text.empty()) return object;
  return codec::decode_error(fmt::format("{} {} is invalid: {}", kind, display_name(object), problem.text));
}

template <class T>
Result<T> decode_one(std::string_view text) {
  auto json = codec::parse(text, codec::dropped_keys<T>());
  if (!json) return std::move(json).error();
  const auto checked = codec::check_kind(**json, codec::kind_of<T>);
  if (!checked) return checked.error();
  return decode_object<T>(**json);
}

template <class T>
Result<List<T>> decode_list(std::string_view text) {
  auto json = codec::parse(text, codec::dropped_keys<T>());
  if (!json) return std::move(json).error();
  const auto kind = std::string(codec::kind_of<T>) + "List";
  const auto checked = codec::check_kind(**json, kind);
  if (!checked) return checked.error();

  Problem problem;
  const Object metadata = Object(**json, kind, problem).object("metadata");
  List<T> list;
  list.meta.resource_version = metadata.string("resourceVersion");
  list.meta.continue_token = metadata.string("continue");
  if (list.meta.resource_version.empty()) problem.note("metadata.resourceVersion is missing");
  // A missing `items` is an error, not an empty list: for an empty list Go writes [] or null.
  const Json* items = (*json)->get_object().if_contains("items");
  if (items == nullptr) problem.note("items are missing");
  if (items != nullptr && !items->is_array() && !items->is_null()) problem.note("items is not an array");
  if (!problem.text.empty()) return codec::decode_error(fmt::format("{} is invalid: {}", kind, problem.text));

  if (items->is_null()) return list;
  list.items.reserve(items->get_array().size());
  for (const Json& item : items->get_array()) {
    auto object = decode_object<T>(item);
    if (!object) return std::move(object).error();
    list.items.push_back(*std::move(object));
  }
  return list;
}

std::optional<WatchEventType> event_type(const std::string& text) {
  if (text == "ADDED") return WatchEventType::added;
  if (text == "MODIFIED") return WatchEventType::modified;
  if (text == "DELETED") return WatchEventType::deleted;
  if (text == "BOOKMARK") return WatchEventType::bookmark;
  if (text == "ERROR") return WatchEventType::error;
  return std::nullopt;
}

}  // namespace

Result<Pod> decode_pod(std::string_view json) {
  return decode_one<Pod>(json);
}
Result<Node> decode_node(std::string_view json) {
  return decode_one<Node>(json);
}
Result<PodDisruptionBudget> decode_pdb(std::string_view json) {
  return decode_one<PodDisruptionBudget>(json);
}
Result<DaemonSet> decode_daemon_set(std::string_view json) {
  return decode_one<DaemonSet>(json);
}
Result<NodeVolumes> decode_node_volumes(std::string_view json) {
  return decode_one<NodeVolumes>(json);
}
Result<VolumeAttachment> decode_volume_attachment(std::string_view json) {
  return decode_one<VolumeAttachment>(json);
}
Result<PersistentVolume> decode_persistent_volume(std::string_view json) {
  return decode_one<PersistentVolume>(json);
}
Result<PersistentVolumeClaim> decode_persistent_volume_claim(std::string_view json) {
  return decode_one<PersistentVolumeClaim>(json);
}
Result<Namespace> decode_namespace(std::string_view json) {
  return decode_one<Namespace>(json);
}
Result<Service> decode_service(std::string_view json) {
  return decode_one<Service>(json);
}
Result<Lease> decode_lease(std::string_view json) {
  return decode_one<Lease>(json);
}
Result<ConfigMap> decode_config_map(std::string_view json) {
  return decode_one<ConfigMap>(json);
}
Result<List<Pod>> decode_pod_list(std::string_view json) {
  return decode_list<Pod>(json);
}
Result<List<Node>> decode_node_list(std::string_view json) {
  return decode_list<Node>(json);
}
Result<List<PodDisruptionBudget>> decode_pdb_list(std::string_view json) {
  return decode_list<PodDisruptionBudget>(json);
}
Result<List<VolumeAttachment>> decode_volume_attachment_list(std::string_view json) {
  return decode_list<VolumeAttachment>(json);
}
Result<List<Lease>> decode_lease_list(std::string_view json) {
  return decode_list<Lease>(json);
}
Result<List<ConfigMap>> decode_config_map_list(std::string_view json) {
  return decode_list<ConfigMap>(json);
}

Result<AccessReview> decode_access_review(std::string_view text) {
  constexpr std::string_view kind = "SelfSubjectAccessReview";
  const auto json = codec::parse(text);
  if (!json) return json.error();
  const auto checked = codec::check_kind(**json, kind);
  if (!checked) return checked.error();
  Problem problem;
  const Object review(**json, kind, problem);
  const Object status = review.object("status");
  AccessReview out{status.boolean("allowed"), status.string("reason")};
  if (!status.has("allowed")) problem.note("status.allowed is missing");
  if (problem.text.empty()) return out;
  return codec::decode_error(fmt::format("{} is invalid: {}", kind, problem.text));
}

Result<Self> decode_self_review(std::string_view text) {
  constexpr std::string_view kind = "SelfSubjectReview";
  const auto json = codec::parse(text);
  if (!json) return json.error();
  const auto checked = codec::check_kind(**json, kind);
  if (!checked) return checked.error();
  Problem problem;
  const Object user = Object(**json, kind, problem).object("status").object("userInfo");
  const Object extra = user.object("extra");
  const auto claim = [&](const char* key) {
    auto values = extra.string_list(key);
    return values.empty() ? std::string() : std::move(values.front());
  };
  Self self{user.string("username"),
            user.string_list("groups"),
            claim("authentication.kubernetes.io/node-name"),
            claim("authentication.kubernetes.io/node-uid"),
            claim("authentication.kubernetes.io/pod-name"),
            claim("authentication.kubernetes.io/pod-uid"),
            claim("authentication.kubernetes.io/credential-id")};
  if (self.username.empty()) problem.note("status.userInfo.username is missing");
  if (problem.text.empty()) return self;
  return codec::decode_error(fmt::format("{} is invalid: {}", kind, problem.text));
}

Result<> decode_write_answer(std::string_view text, std::string_view kind) {
  const auto json = codec::parse(text, codec::dropped_keys<Pod>());
  if (!json) return json.error();
  if (codec::check_kind(**json, kind)) return {};
  const auto checked = codec::check_kind(**json, "Status");
  if (!checked) return checked.error();
  Problem problem;
  const auto status = Object(**json, "Status", problem).string("status");
  if (status == "Success") return {};
  return codec::decode_error(
      fmt::format("the status of the server's Status object is '{}', expected Success or Failure", status));
}

template <class T>
Result<WatchEvent<T>> decode_watch_event(std::string_view line) {
  // Relies on how the API server begins such a line. Of a deleted object only its identity is needed, so everything
  // else is skipped.
  const bool deleted = line.starts_with(R"({"type":"DELETED",)");
  const auto json = codec::parse(line, deleted ? codec::keys_beside_identity() : codec::dropped_keys<T>());
  if (!json) return json.error();
  if (!(*json)->is_object()) return codec::decode_error("expected a watch event, got " + codec::describe(**json));
  Problem problem;
  const Object event(**json, "event", problem);
  const auto name = event.string("type");
  const auto type = event_type(name);
  const Json* object = event.find("object");
  if (!type || object == nullptr) {
    return codec::decode_error(
        fmt::format("expected a watch event, got type '{}'{}", name, object ? "" : " without object"));
  }
  WatchEvent<T> out;
  out.type = *type;
  if (*type == WatchEventType::error) {
    out.error = codec::error_of(*object);
    return out;
  }
  if (*type == WatchEventType::bookmark) {
    out.resource_version = Object(*object, "bookmark", problem).object("metadata").string("resourceVersion");
    if (out.resource_version.empty()) problem.note("a bookmark without resourceVersion");
    if (!problem.text.empty()) return codec::decode_error(problem.text);
    return out;
  }
  auto decoded = decode_object<T>(*object);
  if (!decoded) return std::move(decoded).error();
  out.object = *std::move(decoded);
  out.resource_version = out.object.resource_version;
  return out;
}

template Result<WatchEvent<Pod>> decode_watch_event<Pod>(std::string_view);
template Result<WatchEvent<Node>> decode_watch_event<Node>(std::string_view);
template Result<WatchEvent<PodDisruptionBudget>> decode_watch_event<PodDisruptionBudget>(std::string_view);
template Result<WatchEvent<VolumeAttachment>> decode_watch_event<VolumeAttachment>(std::string_view);
template Result<WatchEvent<Lease>> decode_watch_event<Lease>(std::string_view);
template Result<WatchEvent<ConfigMap>> decode_watch_event<ConfigMap>(std::string_view);

}  // namespace haulout::k8s
