// "Did you mean …": the nearest of the known words. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace haulout {

// Insertions, deletions and substitutions that turn one into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The known word nearest to `typed`, the first of equals; nothing when even that differs in more than a third.
std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& known);

}  // namespace haulout
