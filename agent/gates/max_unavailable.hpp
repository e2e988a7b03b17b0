// --max-unavailable: how many nodes of a pool may be out at once, as a number or as a percentage of its nodes. Pure.
#pragma once

#include <string>
#include <string_view>

#include "retry/task.hpp"

namespace haulout::agent {

struct MaxUnavailable {
  enum class Unit { nodes, percent };
  std::size_t value = 1;
  Unit unit = Unit::nodes;

  // Of a pool with this many nodes. A percentage is rounded down, but more than 0 % of at least one node is at least
  // one node. Of no nodes it is none: whoever asks is a node of the pool, so such a list is wrong.
  std::size_t of(std::size_t nodes) const;
  bool operator==(const MaxUnavailable&) const = default;
};

// "1", "25%", "0" for none at all. Errc::invalid with cause and way out for anything else; the caller names the text.
Result<MaxUnavailable> parse_max_unavailable(std::string_view text);
// As it is written on the command line.
std::string to_string(const MaxUnavailable& limit);

}  // namespace haulout::agent
