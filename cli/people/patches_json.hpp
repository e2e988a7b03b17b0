// The guarded merge patches by which people steer agents. Pure.
#pragma once

#include <optional>
#include <string>

#include "k8s/objects.hpp"

namespace haulout::cli {

// Sets the annotation, or removes it, provided that the Node is still as it was read.
std::string annotation_patch(const k8s::Node& node, std::string_view key, const std::optional<std::string>& value);
// The same for a key of a ConfigMap.
std::string entry_patch(const k8s::ConfigMap& config_map, std::string_view key,
                        const std::optional<std::string>& value);

}  // namespace haulout::cli
