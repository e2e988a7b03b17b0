// Checks the objects that an agent writes (Leases, Events, labels) as the API server validates them, with the server's
// messages. Pure.
#pragma once

#include <optional>
#include <string>

#include "sim/status_bodies.hpp"

namespace haulout::sim {

// Returns the message of the server's decoder if it cannot decode a value, namely a MicroTime without exactly six
// decimals.
std::optional<std::string> undecodable(const ResourceInfo& info, const Json& object);

// Returns a 422 if the object is invalid. `before` is the stored object, or null if the object is new.
std::optional<StatusBody> refused(const ResourceInfo& info, const Json& object, const Json& before);

}  // namespace haulout::sim
