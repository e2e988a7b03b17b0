// Settings that are allowed but may not do what the person who made them expects. Reported in the log at the start, and
// by --check.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "agent/hosts/host_root.hpp"
#include "k8s/client.hpp"

namespace haulout::agent {

// Returns a sentence if all nodes of the pool may be unavailable at once, else nothing. `nodes` is the size of the
// pool, or empty if it is unknown. Pure.
std::optional<std::string> whole_pool_caution(const AgentConfig& config, std::optional<std::size_t> nodes);

struct Cautions {
  std::vector<std::string> config{}, hooks{};  // one sentence each
};

// Checks the size of the pool if it matters, the host's hook directory and the annotations of `node`. If one of them
// cannot be read, its check finds nothing. Cancellable.
boost::asio::awaitable<Cautions> find_cautions(k8s::Client& client, const AgentConfig& config, const HostRoot& root,
                                               k8s::Node node, TimePoint deadline);

}  // namespace haulout::agent
