// Additions of generation 10 of the random worlds (world_generator.hpp): Deployments whose pods a drain may replace in
// advance (`--surge`), because ReplicaSet, template and pods have the label pod-template-hash. They differ in replicas,
// strategy, budget, annotations, deletion costs, and in what keeps the replacement from being Ready: a quota, an image,
// no node. Some are rolled out, and have pods of two ReplicaSets. Some have a pod that is not Ready. Some share a
// budget. Some have a pod that an earlier run has left surged or half given back, or one whose mark means nothing.
// People scale or delete some, delete the older ReplicaSet, or give the label back. A client may annotate released pods
// all the time, and a webhook may undo one half of a release. Pure. They use a random source of their own, so that
// worlds of earlier generations do not change.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// Adds to `world.objects` and `world.incidents`. All obstacles are resolved in time.
void add_surges(GeneratedWorld& world, const GeneratorOptions& options);

}  // namespace haulout::sim
