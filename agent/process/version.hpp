// The version of this program, and the name under which it asks the API server.
#pragma once

#include <string>
#include <string_view>

namespace haulout::agent {

// "1.2.3"
std::string_view version();
// As the audit log of the API server shows it: "haulout/1.2.3 (drain)".
std::string user_agent(std::string_view command);

}  // namespace haulout::agent
