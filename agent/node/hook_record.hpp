// What the record says about hooks, and what hooks are told of it. Pure.
#pragma once

#include "agent/hooks/hook_annotations.hpp"
#include "agent/hooks/hook_programs.hpp"
#include "agent/node/record.hpp"

namespace haulout::agent {

bool has_passed(const Record& record, HookPoint point);
// The point that a record stands at, in the states that have one; of a degraded node the one that failed.
HookPoint hook_point_at(const Record& record);
// The ticket of those who are being asked; empty: nobody is.
std::string asked_ticket(const Record& record);
// HAULOUT_NODE, HAULOUT_POINT, HAULOUT_STATE, HAULOUT_FROM_VERSION, HAULOUT_TO_VERSION, HAULOUT_REASONS (one per line).
HookEnvironment hook_environment(const std::string& node, HookPoint point, const Record& record);

}  // namespace haulout::agent
