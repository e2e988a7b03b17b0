#include "k8s/codec.hpp"

#include <boost/json.hpp>

namespace haulout::k8s {
namespace {

using codec::Json;
using codec::Object;
using codec::Problem;

// Keys of objects and arrays that do not belong to the identity of an object (name, namespace, UID, resourceVersion),
// for all kinds. They are skipped when the event of a deletion is decoded.
constexpr std::array<std::string_view, 9> keys_beside_identity = {
    "managedFields", "labels", "annotations", "ownerReferences", "finalizers", "spec", "status", "data", "binaryData"};

std::optional<WatchEventType> event_type(const std::string& text) {
  if (text == "ADDED") return WatchEventType::added;
  if (text == "MODIFIED") return WatchEventType::modified;
  if (text == "DELETED") return WatchEventType::deleted;
  if (text == "BOOKMARK") return WatchEventType::bookmark;
  if (text == "ERROR") return WatchEventType::error;
  return std::nullopt;
}

// Approximate size of a value as JSON, in bytes.
std::size_t size_of(const Json& json) {
  constexpr std::size_t around = 4;  // allowance for the quotes, colon, comma and brackets around a value
  std::size_t bytes = around;
  if (const auto* text = json.if_string()) bytes += text->size();
  if (const auto* list = json.if_array())
    for (const Json& item : *list) bytes += size_of(item);
  if (const auto* object = json.if_object())
    for (const auto& member : *object) bytes += around + member.key().size() + size_of(member.value());
  return bytes;
}

std::string name_of(const Json& json) {
  codec::Problem problem;
  const auto metadata = codec::Object(json, "object", problem).object("metadata");
  const std::string ns = metadata.string("namespace");
  return ns.empty() ? metadata.string("name") : ns + "/" + metadata.string("name");
}

}  // namespace

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
  const auto json = codec::parse(text, Kind<Pod>::dropped);
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

Result<std::string> decode_continue_token(std::string_view list) {
  static constexpr std::array<std::string_view, 1> objects = {"items"};
  const auto json = codec::parse(list, objects);
  if (!json) return json.error();
  Problem problem;
  auto token = Object(**json, "the list", problem).object("metadata").string("continue");
  if ((*json)->is_null()) problem.note("the list is null, not an object");
  if (problem.text.empty()) return token;
  return codec::decode_error(problem.text);
}

std::string longest_object(std::string_view list) {
  const auto json = codec::parse(list);
  if (!json || !(*json)->is_object()) return {};
  const Json* items = (*json)->get_object().if_contains("items");
  if (items == nullptr || !items->is_array()) return {};
  const Json* longest = nullptr;
  std::size_t most = 0;
  for (const Json& item : items->get_array()) {
    const std::size_t size = size_of(item);
    if (size <= most) continue;
    most = size;
    longest = &item;
  }
  if (longest == nullptr) return {};
  constexpr double kilobyte = 1024;
  const double size = static_cast<double>(most) / kilobyte;
  return fmt::format("{} ({:.0f} kB)", name_of(*longest), size);
}

Result<codec::RawEvent> codec::read_event(std::string_view line, std::span<const std::string_view> dropped) {
  // Only the identity of a deleted object is needed, so everything else is skipped. The API server always writes `type`
  // first, so the beginning of the line shows whether the event is a deletion.
  const bool deleted = line.starts_with(R"({"type":"DELETED",)");
  auto json = parse(line, deleted ? std::span<const std::string_view>(keys_beside_identity) : dropped);
  if (!json) return std::move(json).error();
  if (!(*json)->is_object()) return decode_error("expected a watch event, got " + describe(**json));
  RawEvent out{*std::move(json)};
  Problem problem;
  const Object event(*out.document, "event", problem);
  const auto name = event.string("type");
  const auto type = event_type(name);
  const Json* object = event.find("object");
  if (!type || object == nullptr) {
    return decode_error(fmt::format("expected a watch event, got type '{}'{}", name, object ? "" : " without object"));
  }
  out.type = *type;
  if (*type == WatchEventType::error) {
    out.error = error_of(*object);
  } else if (*type == WatchEventType::bookmark) {
    out.resource_version = Object(*object, "bookmark", problem).object("metadata").string("resourceVersion");
    if (out.resource_version.empty()) problem.note("a bookmark without resourceVersion");
    if (!problem.text.empty()) return decode_error(problem.text);
  } else {
    out.object = object;
  }
  return out;
}

}  // namespace haulout::k8s
