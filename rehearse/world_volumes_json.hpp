// Prepares the volumes of a snapshot for the simulated cluster of a rehearsal, and says what is assumed of them. No
// I/O.
#pragma once

#include <string>
#include <vector>

#include "rehearse/rehearsal.hpp"
#include "sim/cluster.hpp"

namespace haulout::rehearse {

// Prepares the volumes in the cluster, and returns a phrase for each assumption. Call it once, before the cluster runs.
// Removes VolumeAttachments that were being attached: the simulation does not continue them, but attaches the volumes
// again if pods need them. Assumes that a driver attaches nothing if running pods use its volumes without any
// VolumeAttachment.
std::vector<std::string> prepare_volumes(sim::Cluster& cluster);

// Returns phrases about how long volumes take to be detached and attached; none if nothing is attached to `nodes`.
std::vector<std::string> assumed_of_volumes(const Assumptions& assumptions, const sim::Cluster& cluster,
                                            const std::vector<std::string>& nodes);

}  // namespace haulout::rehearse
