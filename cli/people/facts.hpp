// Reads what concerns the whole fleet: the Leases in which slots are stored, and the ConfigMap `haulout`. Never fails:
// the nodes can be shown without them, so the result says what could not be read, and why. Cancellable. Borrows the
// client.
#pragma once

#include "cli/people/node_view.hpp"
#include "k8s/client.hpp"

namespace haulout::cli {

boost::asio::awaitable<FleetFacts> read_facts(k8s::Client& client, std::string ns, TimePoint deadline);

}  // namespace haulout::cli
