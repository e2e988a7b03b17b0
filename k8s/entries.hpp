// Labels, annotations and the data of ConfigMaps: maps of strings. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace haulout::k8s {

// Returns the value of the key; nothing if there is no such key.
inline std::optional<std::string> value_at(const std::map<std::string, std::string>& entries, std::string_view key) {
  const auto found = entries.find(std::string(key));
  return found == entries.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace haulout::k8s
