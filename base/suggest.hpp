// Finds the known word that is most similar to a misspelt one, for "did you mean …" in error messages. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace haulout {

// Returns the number of insertions, deletions and substitutions of bytes that turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// Returns the known word with the smallest edit distance to `typed`; the first one if several have it. Returns nullopt
// if that distance exceeds 1 (`typed` has at most three bytes), or 2 and a third of the length (`typed` is longer).
std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& known);

}  // namespace haulout
