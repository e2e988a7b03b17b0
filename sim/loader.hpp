// Reads the objects of a cluster in the formats of kubectl: a List, single objects, JSON or (multi-document) YAML. The
// items of a List in JSON are taken over one by one while its text is parsed, so that they never exist twice.
#pragma once

#include <functional>
#include <istream>
#include <optional>
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

// The same for a text that need not be in memory. Returns nullopt if the text is no JSON document: then it has to be
// read again as a whole, because YAML, and the position of an error, need all of it. Reads until the end or the error.
std::optional<Result<std::vector<Json>>> read_json_objects(std::istream& text,
                                                           const std::function<void(Json&)>& prepare = {});

}  // namespace haulout::sim
