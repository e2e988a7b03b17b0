// Base64 with the standard alphabet and padding (RFC 4648 section 4), and HTTP Basic credentials. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace haulout::http {

std::string base64_encode(std::string_view bytes);
// Decodes the text and skips line breaks. Returns nullopt if the rest is not valid Base64: a foreign character or wrong
// padding.
std::optional<std::string> base64_decode(std::string_view text);

// Returns the value of an Authorization or Proxy-Authorization header for this user and password (RFC 7617).
std::string basic_credentials(std::string_view user, std::string_view password);

}  // namespace haulout::http
