// What the seventh generation of worlds has besides: an etcd that is restored from a backup; a server whose name or
// certificate is not good for a while, answers that are whole and wrong, errors in the middle of a watch, more answers
// that waiting cannot heal; drains with the credential of the node's kubelet. Pure; from a seed of its own, so that
// older worlds stay what they were.
#pragma once

#include "tests/worlds/world_generator.hpp"

namespace haulout::sim {

// Adds to all of `world`; what stands in the way heals, unless `hopeless_answers` says otherwise.
void add_adversities(GeneratedWorld& world, const GeneratorOptions& options);

}  // namespace haulout::sim
