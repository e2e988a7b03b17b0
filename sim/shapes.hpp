// What the API server's decoder refuses of an object before anything else looks at it: a text where a list belongs.
// Objects of a file have not been through it, and what reads and writes them in the simulation relies on it. Pure.
#pragma once

#include <optional>
#include <string>

#include "sim/objects.hpp"

namespace haulout::sim {

// The first field of the wrong type and what it should be: "spec.volumes has to be a list". Fields that the
// simulation does not look into may be anything.
std::optional<std::string> shape_problem(const Json& object);

}  // namespace haulout::sim
