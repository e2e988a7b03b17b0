// Namespaces: the struct, its place in the API and its decoder. Pure.
#pragma once

#include "k8s/kind.hpp"

namespace haulout::k8s {

struct Namespace {
  std::string name;
  std::string uid;
  // Messages of the conditions that are True. Each says what prevents the deletion of the namespace.
  std::vector<std::string> conditions;
  std::optional<WallTime> deletion_timestamp{};
};

template <>
struct Kind<Namespace> {
  static constexpr std::string_view name = "Namespace";
  static constexpr Api api{"v1", "namespaces", Scope::cluster, Names::of_objects, "namespace", "namespaces"};
  static constexpr std::array<std::string_view, 1> dropped = {"managedFields"};

  static void read(const codec::Object& json, Namespace& ns) {
    const auto metadata = json.object("metadata");
    codec::read_identity(metadata, ns);
    ns.deletion_timestamp = metadata.time("deletionTimestamp");
    json.object("status").each("conditions", [&](const codec::Object& condition) {
      if (condition.string("status") == "True") ns.conditions.push_back(condition.string("message"));
    });
  }
};

}  // namespace haulout::k8s
