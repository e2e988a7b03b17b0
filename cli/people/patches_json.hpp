// Builds the merge patches by which people control agents (pause, resume, request-reboot). Each patch contains the
// resourceVersion of the object that was read, so that the server refuses it with 409 if the object has changed. Pure.
#pragma once

#include <optional>
#include <string>

#include "k8s/objects.hpp"

namespace haulout::cli {

// Returns a patch that sets the annotation `key` of the Node, or removes it if `value` is unset.
std::string annotation_patch(const k8s::Node& node, std::string_view key, const std::optional<std::string>& value);
// Returns a patch that sets `key` in the data of the ConfigMap, or removes it if `value` is unset.
std::string entry_patch(const k8s::ConfigMap& config_map, std::string_view key,
                        const std::optional<std::string>& value);

}  // namespace haulout::cli
