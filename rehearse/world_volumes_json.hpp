// What a rehearsal makes of the volumes of its snapshot. Pure.
#pragma once

#include <string>
#include <vector>

#include "rehearse/rehearsal.hpp"
#include "sim/cluster.hpp"

namespace haulout::rehearse {

// Once, before the world goes on; returns a phrase for each thing that is assumed. What was being attached, which
// nobody here goes on with, is attached anew where it is wanted. Drivers whose volumes pods use that run, with not one
// VolumeAttachment, attach nothing.
std::vector<std::string> prepare_volumes(sim::Cluster& cluster);

// How long volumes take, a phrase each; none where nothing is attached to these nodes.
std::vector<std::string> assumed_of_volumes(const Assumptions& assumptions, const sim::Cluster& cluster,
                                            const std::vector<std::string>& nodes);

}  // namespace haulout::rehearse
