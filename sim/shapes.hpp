// Checks the types of an object's fields, as the API server's decoder does before anything else: for example, it
// refuses a string in place of a list. Objects from a file have not passed that decoder, but the simulation relies on
// the types. Pure.
#pragma once

#include <optional>
#include <string>

#include "sim/objects.hpp"

namespace haulout::sim {

// Returns the first field with a wrong type, and its right type: "spec.volumes has to be a list". Fields that the
// simulation does not read may have any type.
std::optional<std::string> shape_problem(const Json& object);

}  // namespace haulout::sim
