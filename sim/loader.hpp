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

// Why a document has nothing to read.
enum class Foreign { no_object, is_template };

// How a text is read. Functions may be empty. If the text turns out to be invalid, they have been called in vain.
struct Reading {
  std::function<void(Json&)> prepare{};           // called with every object; may change it
  std::function<void(const Json&)> on_unknown{};  // called with every object of a kind that the simulation lacks
  // Called with the reason for every document, or item of a list, that is no Kubernetes object, and for every broken
  // object that is a template. If it is empty, these are errors.
  std::function<void(Foreign)> on_foreign{};
  // Returns true for a kind of which broken objects are skipped, as if the simulation lacked it.
  std::function<bool(std::string_view kind)> may_be_broken{};
  bool may_be_nameless = false;  // objects with metadata.generateName need no metadata.name
};

// Returns every object in the text, with kind and metadata.name. Skips kinds that the simulation does not know: a kind
// is known in its API group, in an earlier group of it, and without an apiVersion. Fails with Errc::invalid, naming the
// document, if a document is not a valid object. Fails with Errc::decode if the text is neither JSON nor YAML, naming
// the position, or if a document is not UTF-8.
Result<std::vector<Json>> read_objects(std::string_view text, const Reading& reading = {});

// The same for a text that need not be in memory. Returns nullopt if the text is no JSON document: then it has to be
// read again as a whole, because YAML, and the position of an error, need all of it. Reads until the end or the error.
std::optional<Result<std::vector<Json>>> read_json_objects(std::istream& text, const Reading& reading = {});

}  // namespace haulout::sim
