// Additions of generation 6 of the random worlds (world_generator.hpp): pods that tolerate a cordon, critical pods,
// pods of a deleted DaemonSet, pods with a drain order; rights that are taken away and given back; a node that is not
// Ready for a while, is replaced or deleted; answers and codes that only proxies and broken servers give. Pure. They
// use a random source of their own, so that worlds of earlier generations do not change.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// May add to every part of `world`. All obstacles are resolved in time, unless `node_goes` or `hopeless_answers` is
// set.
void add_upheavals(GeneratedWorld& world, const GeneratorOptions& options);

}  // namespace haulout::sim
