// Finds what takes the space in a list that is too long, for messages. Pure.
#pragma once

#include <string>
#include <string_view>

namespace haulout::k8s {

// Returns the longest object of a list: "haulout/haulout-default-7 (1229 kB)". The namespace is left out if the object
// has none. Empty if the list has no objects or cannot be parsed. Parses the whole list once more.
std::string longest_object(std::string_view list);

}  // namespace haulout::k8s
