// The way out of a failed connection or a missing right. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/requests_ledger.hpp"
#include "retry/task.hpp"

namespace haulout::cli {

// One sentence; empty when there is nothing better to say than the error itself.
std::string way_out(const Error& error);

// The rule to add to a ClusterRole, as YAML. The core group is "".
std::string rbac_hint(std::string_view verb, std::string_view group, std::string_view resource,
                      std::string_view subresource);
// All that a drain needs, as a complete ClusterRole.
std::string rbac_of_drain();

// What to print after an error that ended the command: the way out and, for a denied right, the rule. `denied` is the
// request that was answered by 403 last, if any.
std::vector<std::string> advice(const Error& error, const std::optional<agent::RequestInfo>& denied);

}  // namespace haulout::cli
