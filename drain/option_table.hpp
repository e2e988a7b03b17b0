// The table of the options of a drain that users can set, with one row for each option. The flags of `haulout drain`
// and `haulout rehearse`, and the agent's options for the drain, are generated from these rows. The defaults are those
// of drain/options.hpp. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/option.hpp"
#include "drain/options.hpp"

namespace haulout::drain {

enum class OptionUser { command, agent };

// The timeout that a negative `--timeout` sets. It has passed when the drain begins.
inline constexpr Duration shortest_timeout = Duration(1);

// Returns the options that `user` can set. An option has the same meaning for both users; its text may end with a
// sentence for one of them only.
std::vector<OptionOf<Options>> option_table(OptionUser user);

// Returns the default of every option for `user`.
Options defaults_of(OptionUser user);

// Parses a label selector of pods. Fails with Errc::invalid if it is not a selector, or if it is empty.
Result<k8s::LabelSelector> parse_pod_selector(const std::string& text);

}  // namespace haulout::drain
