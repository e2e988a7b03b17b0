// Additions of the seventh generation of worlds: an etcd that is restored from a backup; a server whose name or
// certificate is invalid for a while; complete but wrong answers; errors in the middle of a watch; more answers after
// which waiting does not help; drains with the credential of the node's kubelet. Pure. They have their own seed, so
// that older worlds do not change.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// May add to every part of `world`. All obstacles are resolved in time, unless `hopeless_answers` is set.
void add_adversities(GeneratedWorld& world, const GeneratorOptions& options);

}  // namespace haulout::sim
