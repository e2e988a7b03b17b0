// Base64 with the standard alphabet and padding (RFC 4648 section 4), and what HTTP makes of it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace haulout::http {

std::string base64_encode(std::string_view bytes);
// Line breaks are skipped; anything else that does not belong makes it nothing.
std::optional<std::string> base64_decode(std::string_view text);

// The value of an Authorization or Proxy-Authorization header (RFC 7617).
std::string basic_credentials(std::string_view user, std::string_view password);

}  // namespace haulout::http
