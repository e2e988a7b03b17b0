// Advice to print after an error: what a person can do about a failed connection or a missing right (RBAC). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/requests_ledger.hpp"
#include "retry/task.hpp"

namespace haulout::cli {

// Returns the remedy for the error in one sentence; empty if the error message itself contains it, or there is none.
std::string way_out(const Error& error);

// Returns the rule, as YAML, that grants this right when it is added to a ClusterRole. An empty `group` is the core
// group.
std::string rbac_hint(std::string_view verb, std::string_view group, std::string_view resource,
                      std::string_view subresource);
// Returns a complete ClusterRole in YAML with all rights that a drain needs.
std::string rbac_of_drain();

// Returns the lines to print after an error that ended the command: the remedy and, for a denied right, the missing
// rule. `denied` is the last request that the server answered with 403, if any.
std::vector<std::string> advice(const Error& error, const std::optional<agent::RequestInfo>& denied);

}  // namespace haulout::cli
