// Reads the objects of a cluster in the formats of kubectl: a List, single objects, JSON or (multi-document) YAML. The
// items of a List in JSON are taken over one by one while its text is parsed, so that they never exist twice.
// Pure.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "retry/task.hpp"
#include "sim/objects.hpp"

namespace haulout::sim {

// Returns every object in the text, with kind and metadata.name. Skips kinds that the simulation does not know. Fails
// with Errc::invalid, naming the document, if a document is not a valid object. Fails with Errc::decode if the text is
// neither JSON nor YAML, naming the position, or if a document is not UTF-8.
// `prepare` is called with every object, and may change it. If the text turns out to be invalid, it has been called in
// vain.
Result<std::vector<Json>> read_objects(std::string_view text, const std::function<void(Json&)>& prepare = {});

}  // namespace haulout::sim
