// What the API server refuses of the objects that an agent writes (Leases, Events, labels), in its own words. Pure.
#pragma once

#include <optional>
#include <string>

#include "sim/status_bodies.hpp"

namespace haulout::sim {

// A value that cannot be decoded: a MicroTime without exactly six decimals. The decoder's message.
std::optional<std::string> undecodable(const ResourceInfo& info, const Json& object);

// 422 for a new object (`before` is null), or for a new state of one.
std::optional<StatusBody> refused(const ResourceInfo& info, const Json& object, const Json& before);

}  // namespace haulout::sim
