// Reads a world as kubectl prints it: a List, single objects, JSON or (multi-document) YAML. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "retry/task.hpp"
#include "sim/objects.hpp"

namespace haulout::sim {

// Every object in the text, with kind and metadata.name; kinds that the simulation does not know are left out.
// Errc::invalid names the document that cannot be used, Errc::decode the place where the text is neither JSON nor YAML,
// or the document that is not UTF-8.
Result<std::vector<Json>> read_objects(std::string_view text);

}  // namespace haulout::sim
