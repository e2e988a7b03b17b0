// The version of this program, and its user agent in requests to the API server. Pure.
#pragma once

#include <string>
#include <string_view>

namespace haulout::agent {

// For example "1.2.3".
std::string_view version();
// The name in the API server's audit log: "haulout/1.2.3 (drain)".
std::string user_agent(std::string_view command);

}  // namespace haulout::agent
