// Finds the known word that is most similar to a misspelt one, for "did you mean …" in error messages. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace haulout {

// Returns the number of insertions, deletions and substitutions of bytes that turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// Returns the known word with the smallest edit distance to `typed`; the first one if several have it. Ignores words
// that differ too much: the distance must be at most 1 if `typed` has up to three bytes, otherwise at most 2 or a third
// of its length, whichever is more. Returns nullopt if no word is left.
std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& known);

}  // namespace haulout
