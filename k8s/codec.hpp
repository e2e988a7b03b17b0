// Decodes the responses of the API server: one object, a list, a watch event. In this folder only the codec files,
// status.cpp, exec_plugin.cpp and kubeconfig.cpp use a JSON library.
//
// Every decoder checks its input. It fails with Errc::decode and an explanation if the body is not JSON, is cut short,
// has another kind, or lacks a name or UID; it never returns an empty object. It fails with Errc::protocol if the body
// has too many values (codec_json.hpp). Unknown fields are ignored. Pure.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

#include "k8s/objects.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

// Decodes an object of a kind for which there is a Kind<T>.
template <class T>
Result<T> decode(std::string_view json);
// Decodes a list. If the kind has an outline, leaves out the objects for which `wanted` returns false: it sees their
// outlines, and the rest of them is not decoded.
template <class T>
Result<List<T>> decode_list(std::string_view json, const std::function<bool(const T&)>& wanted = {});

// Type of a watch event.
enum class WatchEventType { added, modified, deleted, bookmark, error };
// One line of a watch stream. A bookmark has only `resource_version`.
template <class T>
struct WatchEvent {
  WatchEventType type = WatchEventType::bookmark;
  T object;                      // for added and modified; for deleted only its identity is certain
  std::string resource_version;  // for every type except error
  Error error;                   // for type error: the Status that the server sent
};
template <class T>
Result<WatchEvent<T>> decode_watch_event(std::string_view line);

// The answer to a SelfSubjectAccessReview.
struct AccessReview {
  bool allowed = false;
  std::string reason;
};
Result<AccessReview> decode_access_review(std::string_view json);
Result<Self> decode_self_review(std::string_view json);

// Checks the response to a write whose result is not needed. Succeeds for a Status that says Success (evictions, most
// deletions) or an object of the given kind; otherwise fails with Errc::decode.
Result<> decode_write_answer(std::string_view json, std::string_view kind = "Pod");

// Returns metadata.continue of a list, without a look at its objects: empty for the last page. Fails with Errc::decode
// if the text is no JSON object or the token is no text.
Result<std::string> decode_continue_token(std::string_view list);

// Returns namespace (if it has one), name and size of the longest object of a list, for messages:
// "haulout/haulout-default-7 (1229 kB)". Returns an empty string if the list has no objects or cannot be parsed. Parses
// the whole list once more.
std::string longest_object(std::string_view list);

namespace codec {

// Returns whether the name would change the path of a URL. The API server accepts no such name.
inline bool is_path(std::string_view name) {
  return name == "." || name == ".." || name.find('/') != std::string_view::npos;
}

// Notes a problem if a field that every object of the API has is missing or invalid. Namespace and
// resourceVersion are required only if the type has these fields.
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

template <class T>
std::string display_name(const T& object) {
  if constexpr (requires { object.ns; }) {
    return object.ns + "/" + object.name;
  } else {
    return object.name;
  }
}

// Decodes one object, or one item of a list, with `read`. Items have no `kind`; if an object has one, it must be the
// expected kind.
template <class T>
Result<T> decode_object(const Json& json, void (*read)(const Object&, T&) = Kind<T>::read) {
  if (auto checked = check_kind_if_any(json, Kind<T>::name); !checked) return std::move(checked).error();
  T object;
  Problem problem;
  read(Object(json, Kind<T>::name, problem), object);
  check_identity(object, problem);
  if (problem.text.empty()) return object;
  return decode_error(fmt::format("{} {} is invalid: {}", Kind<T>::name, display_name(object), problem.text));
}

// A watch event whose object has not been decoded yet. `object` is set for added, modified and deleted.
struct RawEvent {
  Document document;
  WatchEventType type = WatchEventType::bookmark;
  const Json* object = nullptr;
  std::string resource_version{};  // that of a bookmark; empty for events of other types
  Error error{};
};
Result<RawEvent> read_event(std::string_view line, std::span<const std::string_view> dropped);

}  // namespace codec

template <class T>
Result<T> decode(std::string_view json) {
  auto document = codec::parse(json, Kind<T>::dropped);
  if (!document) return std::move(document).error();
  if (auto checked = codec::check_kind(**document, Kind<T>::name); !checked) return std::move(checked).error();
  return codec::decode_object<T>(**document);
}

template <class T>
Result<List<T>> decode_list(std::string_view json, const std::function<bool(const T&)>& wanted) {
  auto document = codec::parse(json, Kind<T>::dropped);
  if (!document) return std::move(document).error();
  List<T> list;
  auto head = codec::read_list(**document, std::string(Kind<T>::name) + "List", [&](const codec::Json& item) {
    if constexpr (requires { Kind<T>::read_outline; }) {
      const auto outline = wanted ? codec::decode_object<T>(item, Kind<T>::read_outline) : Result<T>(T());
      if (!outline) return Result<>(outline.error());
      if (wanted && !wanted(*outline)) return Result<>();
    }
    auto object = codec::decode_object<T>(item);
    if (!object) return Result<>(std::move(object).error());
    list.items.push_back(*std::move(object));
    return Result<>();
  });
  if (!head) return std::move(head).error();
  list.meta = {std::move(head->resource_version), std::move(head->continue_token)};
  return list;
}

template <class T>
Result<WatchEvent<T>> decode_watch_event(std::string_view line) {
  auto event = codec::read_event(line, Kind<T>::dropped);
  if (!event) return std::move(event).error();
  WatchEvent<T> out{event->type, {}, std::move(event->resource_version), std::move(event->error)};
  if (event->object == nullptr) return out;
  auto decoded = codec::decode_object<T>(*event->object);
  if (!decoded) return std::move(decoded).error();
  out.object = *std::move(decoded);
  out.resource_version = out.object.resource_version;
  return out;
}

}  // namespace haulout::k8s
