// Converts YAML (or JSON, which is YAML) to JSON text, with the scalar rules of Kubernetes' own YAML reader. Quoted
// scalars are strings. Plain ones are null, booleans (also y/n, yes/no, on/off), integers (0x, 0o, 0b, leading 0,
// underscores), floats, or strings. Keys become strings. Anchors and merge keys are resolved.
//
// Fails with Errc::decode. The message has line and column, except if aliases make the text too large or too deep. It
// never has the content, because these files contain secrets. Rejects nesting beyond 256, aliases that make the text
// too large, tags other than the core ones, and .nan and .inf (JSON cannot represent them). Pure. Large JSON should go
// to a JSON parser first: this one is about ten times slower.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retry/task.hpp"

namespace haulout::k8s {

struct YamlValue;
using YamlPtr = std::shared_ptr<const YamlValue>;

// A YAML value with its line, so that an error in a file can be reported with its line.
struct YamlValue {
  enum class Kind { scalar, sequence, mapping } kind = Kind::scalar;
  std::size_t line = 0;  // from 1; for an alias the line of the value that it repeats
  std::string json;      // for a scalar: its value as JSON
  std::string text;      // for a scalar: its text without quotes; empty for null
  std::vector<YamlPtr> items;
  std::vector<std::pair<YamlPtr, YamlPtr>> members;  // keys and values in order, repeated keys too; merged members last
};

// Converts the first document that is not empty. Returns "null" if there is none.
Result<std::string> yaml_to_json(std::string_view text);
// Converts all documents, in order. Leaves out empty ones.
Result<std::vector<std::string>> yaml_documents_to_json(std::string_view text);
// Returns the only document that is not empty, or nullptr for an empty text. A second document is an error. Aliases are
// not limited here: a caller that walks the tree must limit the walk.
Result<YamlPtr> yaml_to_tree(std::string_view text);

// Returns "line 3, column 5", for messages that must not quote the text. Both count from 1, and so does `byte`, the
// position at which nlohmann's parser stopped.
inline std::string place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const std::size_t line_start = before.rfind('\n') + 1;  // 0 if there is no '\n': npos + 1 is 0
  return fmt::format("line {}, column {}", std::count(before.begin(), before.end(), '\n') + 1,
                     before.size() - line_start + 1);
}

}  // namespace haulout::k8s
