// Warnings about settings that are allowed but may not have the effect that their author expects. They are logged at
// the start, and printed by --check.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "agent/hosts/host_root.hpp"
#include "k8s/client.hpp"

namespace haulout::agent {

// Returns one sentence if all nodes of the pool may be unavailable at once, otherwise nothing. `nodes` is the size of
// the pool; nothing if it is unknown. Pure.
std::optional<std::string> whole_pool_caution(const AgentConfig& config, std::optional<std::size_t> nodes);

struct Cautions {
  std::vector<std::string> config{}, hooks{};  // one sentence each
};

// Checks the size of the pool if it matters, the host's hook directory and the annotations of `node`. A check that
// cannot read its data returns no warning. Cancellable.
boost::asio::awaitable<Cautions> find_cautions(k8s::Client& client, const AgentConfig& config, const HostRoot& root,
                                               k8s::Node node, TimePoint deadline);

}  // namespace haulout::agent
