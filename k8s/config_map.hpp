// ConfigMaps: the struct, its place in the API, its decoder and its encoder. Pure.
#pragma once

#include "k8s/kind.hpp"

namespace haulout::k8s {

struct ConfigMap {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> data;
  bool operator==(const ConfigMap&) const = default;
};

template <>
struct Kind<ConfigMap> {
  static constexpr std::string_view name = "ConfigMap";
  static constexpr Api api{"v1", "configmaps", Scope::one_namespace, Names::ours, "ConfigMap", "ConfigMaps"};
  static constexpr ListBudget budget{10'000, megabytes(32), megabytes(16), kilobytes(1)};
  static constexpr std::array<std::string_view, 2> dropped = {"managedFields", "binaryData"};

  static void read(const codec::Object& json, ConfigMap& config_map) {
    const auto metadata = json.object("metadata");
    codec::read_identity(metadata, config_map);
    config_map.data = json.strings("data");
  }
  static std::string encode(const ConfigMap& config_map) {
    return codec::Writer()
        .text("apiVersion", api.group_version)
        .text("kind", name)
        .object("metadata", codec::Writer().text("name", config_map.name).text("namespace", config_map.ns))
        .texts_if_any("data", config_map.data)
        .str();
  }
  static std::size_t text_in(const ConfigMap& config_map) { return text_of(config_map.data); }
};

}  // namespace haulout::k8s
