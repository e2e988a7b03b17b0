// Additions of generation 7 of the random worlds (world_generator.hpp): an etcd that is restored from a backup; a
// server whose name or certificate is invalid for a while; complete but wrong answers; errors in the middle of a watch;
// more answers after which waiting does not help; drains with the credential of the node's kubelet. Pure. They use a
// random source of their own, so that worlds of earlier generations do not change.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// May add to every part of `world`. All obstacles are resolved in time, unless `hopeless_answers` is set.
void add_adversities(GeneratedWorld& world, const GeneratorOptions& options);

}  // namespace haulout::sim
