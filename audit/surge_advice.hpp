// Whether `--surge` could replace a pod before its eviction, by the judge that a drain itself asks. Pure.
#pragma once

#include <string>

#include "audit/world.hpp"
#include "drain/surge_judge.hpp"

namespace haulout::audit {

// Returns what a drain with this mode would do with the pod, if the pod's owner has no other wish.
drain::SurgeJudge::Judgement surge_of(const World& world, const WorldPod& pod, drain::Surge mode);

}  // namespace haulout::audit
