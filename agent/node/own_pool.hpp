// The pool to which a node belongs, for questions about the pool as a whole. Pure.
#pragma once

#include <string>

namespace haulout::agent {

struct OwnPool {
  std::string name;
  std::string node_selector{};  // label selector of the pool's nodes; empty: see membership_of()
  bool by_role = false;         // no pool is configured, so each node belongs to the pool of its role
  bool operator==(const OwnPool&) const = default;
};

}  // namespace haulout::agent
