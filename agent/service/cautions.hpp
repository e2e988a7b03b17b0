// What is allowed, and will not do what whoever configured it expects: for the log at the start and for --check.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/config/option.hpp"
#include "agent/hosts/host_root.hpp"
#include "k8s/client.hpp"

namespace haulout::agent {

// Pure. Of a pool with this many nodes; nothing: nobody knows how many. A sentence, or nothing.
std::optional<std::string> whole_pool_caution(const AgentConfig& config, std::optional<std::size_t> nodes);

struct Cautions {
  std::vector<std::string> config{}, hooks{};  // a sentence each
};

// Asks for the pool's nodes where that matters, the host's hook directory and the annotations of `node`. What cannot be
// read is no caution. Cancellable.
boost::asio::awaitable<Cautions> find_cautions(k8s::Client& client, const AgentConfig& config, const HostRoot& root,
                                               k8s::Node node, TimePoint deadline);

}  // namespace haulout::agent
