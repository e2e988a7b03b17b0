// Base64 with the standard alphabet and padding (RFC 4648 section 4). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace haulout::k8s {

std::string base64_encode(std::string_view bytes);
// Line breaks are skipped; anything else that does not belong makes it nothing.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace haulout::k8s
