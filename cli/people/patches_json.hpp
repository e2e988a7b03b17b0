// The merge patches by which people control agents. Each is guarded by the resourceVersion of the object that was read:
// the server refuses it with 409 if the object has changed. Pure.
#pragma once

#include <optional>
#include <string>

#include "k8s/objects.hpp"

namespace haulout::cli {

// Sets the annotation, or removes it if `value` is unset.
std::string annotation_patch(const k8s::Node& node, std::string_view key, const std::optional<std::string>& value);
// The same for a key in the data of a ConfigMap.
std::string entry_patch(const k8s::ConfigMap& config_map, std::string_view key,
                        const std::optional<std::string>& value);

}  // namespace haulout::cli
