// YAML (or JSON, which is YAML) to JSON text, with the scalar rules of Kubernetes' own YAML reader: quoted scalars are
// strings; plain ones are null, booleans (also yes/no/on/off), integers (0x, 0o, 0b, leading 0, underscores), floats,
// or strings. Keys become strings. Anchors and merge keys are resolved.
//
// Failures are Errc::decode and say line and column, never the content: files read here hold secrets. Refused: nesting
// beyond 256, aliases that blow the text up, tags other than the core ones, .nan and .inf (JSON has no word for them).
// Pure. Large JSON is better given to a JSON parser first: this one is an order of magnitude slower.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retry/task.hpp"

namespace haulout::k8s {

struct YamlValue;
using YamlPtr = std::shared_ptr<const YamlValue>;

// A value with its place, for files whose mistakes are to be pointed at.
struct YamlValue {
  enum class Kind { scalar, sequence, mapping } kind = Kind::scalar;
  std::size_t line = 0;  // from 1; behind an alias: of what it repeats
  std::string json;      // of a scalar: what it means
  std::string text;      // of a scalar: what stands there, without quotes; of null nothing
  std::vector<YamlPtr> items;
  std::vector<std::pair<YamlPtr, YamlPtr>> members;  // in order, merged ones last, repeated keys included
};

// The first document; an empty text is "null".
Result<std::string> yaml_to_json(std::string_view text);
// Every document in order; empty ones are left out.
Result<std::vector<std::string>> yaml_documents_to_json(std::string_view text);
// The one document that is not empty, none for an empty text; a second one is refused. Aliases are not counted here:
// whoever walks the tree bounds the walk.
Result<YamlPtr> yaml_to_tree(std::string_view text);

}  // namespace haulout::k8s
