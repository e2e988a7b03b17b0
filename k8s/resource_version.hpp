// Compares resourceVersions of one kind of object. The API promises that they are comparable numbers. Pure.
#pragma once

#include <string_view>

namespace haulout::k8s {

// True if `a` is older than `b`. Expects decimal numbers without leading zeros; does not check that.
constexpr bool is_older(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

}  // namespace haulout::k8s
