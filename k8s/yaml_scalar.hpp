// Converts plain YAML scalars to JSON by the rules of Kubernetes' YAML reader (words and octals of YAML 1.1, and octals
// of YAML 1.2). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace haulout::k8s {

std::string json_string(std::string_view text);
// Returns nothing for infinity and NaN, which JSON cannot represent.
std::optional<std::string> plain_scalar_json(const std::string& text);

}  // namespace haulout::k8s
