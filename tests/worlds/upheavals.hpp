// What the sixth generation of worlds has besides: pods that tolerate a cordon, critical ones, ones that a DaemonSet
// left behind, ones with an order; rights that are taken away and given back, a node that is not Ready for a while, is
// replaced or deleted; answers and codes that only proxies and broken servers give. Pure; from a seed of its own, so
// that older worlds stay what they were.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// Adds to all of `world`; what stands in the way heals, unless `node_goes` or `hopeless_answers` say otherwise.
void add_upheavals(GeneratedWorld& world, const GeneratorOptions& options);

}  // namespace haulout::sim
