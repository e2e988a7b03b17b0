// Resource versions of one kind of object, of which the API promises that they are comparable numbers.
#pragma once

#include <string_view>

namespace haulout::k8s {

// Of decimal numbers without leading zeros; what `a` or `b` is otherwise is not looked at.
constexpr bool is_older(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

}  // namespace haulout::k8s
