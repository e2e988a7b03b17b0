// What a plain YAML scalar means, as JSON: the rules that Kubernetes' YAML reader follows (YAML 1.1 words and octals,
// YAML 1.2 octals besides). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace haulout::k8s {

std::string json_string(std::string_view text);
// Nothing for infinity and NaN, which JSON cannot say.
std::optional<std::string> plain_scalar_json(const std::string& text);

}  // namespace haulout::k8s
