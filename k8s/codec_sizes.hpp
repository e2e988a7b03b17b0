// Who takes the room in a list that is too long: for messages. Pure.
#pragma once

#include <string>
#include <string_view>

namespace haulout::k8s {

// The longest object of a list, "haulout/haulout-default-7 (1229 kB)"; without a namespace where it has none. Empty
// when there is no object in it. Reads the whole list once more.
std::string longest_object(std::string_view list);

}  // namespace haulout::k8s
