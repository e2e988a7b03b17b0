// Reads what concerns the whole fleet: the turns and the ConfigMap. Neither is needed to see the nodes, so what cannot
// be read is a fact, too, and no failure. Cancellable.
#pragma once

#include "cli/people/node_view.hpp"
#include "k8s/client.hpp"

namespace haulout::cli {

boost::asio::awaitable<FleetFacts> read_facts(k8s::Client& client, std::string ns, TimePoint deadline);

}  // namespace haulout::cli
