// Keys of labels that several parts of Haulout read or write on Nodes.
#pragma once

#include <string_view>

namespace haulout::agent {

inline constexpr std::string_view state_label = "haulout.dev/state";
// The Leases that are slots have this label, too.
inline constexpr std::string_view pool_label = "haulout.dev/pool";

}  // namespace haulout::agent
