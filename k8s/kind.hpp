// Describes the kinds of objects of the API to the client. A kind has its struct and a specialisation of Kind<T> in a
// header of this folder (small kinds: objects.hpp): the place of the kind in the API, how its JSON is decoded, and the
// limits of what is kept of it. A new kind is one such header, which objects.hpp includes. Pure.
//
//   template <>
//   struct Kind<T> {
//     static constexpr std::string_view name = "ConfigMap";   // the field `kind` in JSON
//     static constexpr Api api{"v1", "configmaps", …};        // its place in the API
//     static constexpr std::array dropped = {…};              // keys whose objects and arrays are not kept
//     static void read(const codec::Object& json, T& object);
//     static void read_outline(const codec::Object& json, T& object);  // optional: decodes a part, which read() calls
//     static std::string encode(const T& object);             // for kinds that are created
//     static constexpr ListBudget budget{…};                  // for kinds that are listed: limits of a collection
//     static std::size_t text_in(const T& object);            // and the bytes of text that are kept of an object
//   };
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/codec_json.hpp"
#include "retry/clock.hpp"

namespace haulout::k8s {

// The field manager under which the server records Haulout's writes in managedFields.
inline constexpr std::string_view field_manager = "haulout";

// Which collections of a kind exist, and which of them Haulout lists.
enum class Scope {
  cluster,        // its objects have no namespace
  namespaced,     // listed in one namespace or in all
  one_namespace,  // listed in one namespace only, never in all
};

// Where the names in the paths of requests come from. An empty name would make a different, wider request.
enum class Names {
  ours,        // from options or other checked input: an empty name is a bug and terminates the program
  of_objects,  // from fields of other objects: an empty name is the server's mistake and fails with Errc::decode
};

// The place of a kind in the API.
struct Api {
  std::string_view group_version;  // "v1", "policy/v1"
  std::string_view plural;         // in paths: "poddisruptionbudgets"
  Scope scope = Scope::namespaced;
  Names names = Names::ours;
  std::string_view kind{};  // in messages: "PodDisruptionBudget"
  std::string_view many{};  // in messages: "PodDisruptionBudgets"
  // True: an object of this kind may be deleted only in the state that was read, so a deletion must have its
  // resourceVersion, not only its UID.
  bool delete_as_read = false;
};

// Limits for a collection that is listed (list_budget.hpp).
struct ListBudget {
  std::size_t items = 0;
  std::size_t read = 0;  // bytes of JSON; 0 sets no limit, since most of the bytes are not kept
  std::size_t kept = 0;  // bytes of text in the decoded objects: this plus `kept_each` for each object
  std::size_t kept_each = 0;
};
constexpr std::size_t kilobytes(std::size_t count) {
  return count * 1024;
}
constexpr std::size_t megabytes(std::size_t count) {
  return kilobytes(count) * 1024;
}

template <class T>
struct Kind;

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
  bool operator==(const OwnerReference&) const = default;
};

// Returns true for the annotations of a Pod or a Workload that the decoder keeps.
inline bool kept_annotation(std::string_view key) {
  static constexpr std::array<std::string_view, 10> kept = {
      "kubernetes.io/config.mirror",
      "haulout.dev/drain-order",
      "haulout.dev/max-unavailable",
      "haulout.dev/single-replica",
      "karpenter.sh/do-not-disrupt",
      "cluster-autoscaler.kubernetes.io/safe-to-evict",
      "kubevirt.io/evacuationNodeName",
      "haulout.dev/surge",
      "haulout.dev/surged",
      "leaderworkerset.sigs.k8s.io/size",
  };
  return std::find(kept.begin(), kept.end(), key) != kept.end();
}

// Returns the number of bytes of the keys and values of labels, annotations and the like.
inline std::size_t text_of(const std::map<std::string, std::string>& entries) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : entries) bytes += key.size() + value.size();
  return bytes;
}

// Functions for the decoders of several kinds. They note fields of a wrong type in the Problem of the Object.
namespace codec {

// Reads name and UID, and namespace and resourceVersion if T has these fields.
template <class T>
void read_identity(const Object& metadata, T& object) {
  if constexpr (requires { object.ns; }) object.ns = metadata.string("namespace");
  object.name = metadata.string("name");
  object.uid = metadata.string("uid");
  if constexpr (requires { object.resource_version; }) object.resource_version = metadata.string("resourceVersion");
}

inline OwnerReference read_owner(const Object& owner) {
  return {owner.string("apiVersion"), owner.string("kind"), owner.string("name"), owner.string("uid"),
          owner.boolean("controller")};
}

// Returns the ownerReference with `controller: true`. Returns nullopt if there is none, or if a field is empty that the
// API server requires.
inline std::optional<OwnerReference> read_controller(const Object& metadata) {
  std::optional<OwnerReference> controller;
  metadata.each("ownerReferences", [&](const Object& owner) {
    if (!owner.boolean("controller")) return;
    auto found = read_owner(owner);
    if (!found.api_version.empty() && !found.kind.empty() && !found.name.empty() && !found.uid.empty())
      controller = std::move(found);
  });
  return controller;
}

// Returns true if the status has a condition of this type whose status is "True". If there are several of this type,
// the last one counts.
inline bool condition_true(const Object& status, std::string_view type) {
  bool found = false;
  status.each("conditions", [&](const Object& condition) {
    if (condition.string("type") == type) found = condition.string("status") == "True";
  });
  return found;
}

}  // namespace codec
}  // namespace haulout::k8s
