// --max-unavailable: the number or percentage of nodes of a pool that may be unavailable at the same time. Pure.
#pragma once

#include <string>
#include <string_view>

#include "retry/task.hpp"

namespace haulout::agent {

struct MaxUnavailable {
  enum class Unit { nodes, percent };
  std::size_t value = 1;
  Unit unit = Unit::nodes;

  // Returns the limit of a pool with this many nodes. A percentage is rounded down, but one above 0 % is at least one
  // node. A percentage of no nodes is 0: the asking node itself belongs to the pool, so an empty list of nodes is
  // wrong.
  std::size_t of(std::size_t nodes) const;
  bool operator==(const MaxUnavailable&) const = default;
};

// Parses "1", "25%", or "0" for no node at all. Otherwise fails with Errc::invalid; the message has cause and remedy,
// and the caller adds the text.
Result<MaxUnavailable> parse_max_unavailable(std::string_view text);
// The limit as a value for the command line.
std::string to_string(const MaxUnavailable& limit);

}  // namespace haulout::agent
