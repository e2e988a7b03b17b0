// Writes a snapshot of a fleet for measurements, as `kubectl get -o json` prints one.
#pragma once

#include <cstddef>
#include <string>

namespace haulout::bench {

// Every node has `pods_of_node` pods, spread over Deployments of sixty pods in twenty namespaces. Each Deployment has a
// budget that allows a tenth of its pods to be unavailable. With thirty pods on each node, they request half of the
// processors.
std::string fleet_snapshot(std::size_t nodes, std::size_t pods_of_node);

}  // namespace haulout::bench
