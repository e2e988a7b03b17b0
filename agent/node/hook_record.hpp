// Reads the state of the hooks from a record, and builds the environment of hook programs. Pure.
#pragma once

#include "agent/hooks/hook_annotations.hpp"
#include "agent/hooks/hook_programs.hpp"
#include "agent/node/record.hpp"

namespace haulout::agent {

bool has_passed(const Record& record, HookPoint point);
// The hook point at which a record stands, in the states that have one. For a degraded node, the point at which it
// failed.
HookPoint hook_point_at(const Record& record);
// The ticket of the annotation hooks that are being asked; empty if none is.
std::string asked_ticket(const Record& record);
// Sets HAULOUT_NODE, HAULOUT_POINT, HAULOUT_STATE, HAULOUT_FROM_VERSION, HAULOUT_TO_VERSION and HAULOUT_REASONS (one
// reason per line).
HookEnvironment hook_environment(const std::string& node, HookPoint point, const Record& record);

}  // namespace haulout::agent
