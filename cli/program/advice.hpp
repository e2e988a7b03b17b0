// The remedy for a failed connection or a missing right. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/requests_ledger.hpp"
#include "retry/task.hpp"

namespace haulout::cli {

// The remedy in one sentence; empty if there is none beyond the error message itself.
std::string way_out(const Error& error);

// The rule to add to a ClusterRole, as YAML. An empty `group` is the core group.
std::string rbac_hint(std::string_view verb, std::string_view group, std::string_view resource,
                      std::string_view subresource);
// All rights that a drain needs, as a complete ClusterRole in YAML.
std::string rbac_of_drain();

// The lines to print after an error that ended the command: the remedy and, for a denied right, the missing rule.
// `denied` is the last request that the server answered with 403, if any.
std::vector<std::string> advice(const Error& error, const std::optional<agent::RequestInfo>& denied);

}  // namespace haulout::cli
