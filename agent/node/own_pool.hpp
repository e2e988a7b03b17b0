// Which group of nodes a node belongs to, for what is asked about the pool as a whole.
#pragma once

#include <string>

namespace haulout::agent {

struct OwnPool {
  std::string name;
  std::string node_selector{};  // label selector of its nodes; empty: see membership_of()
  bool by_role = false;         // no pool is configured, so that each node belongs to that of its role
  bool operator==(const OwnPool&) const = default;
};

}  // namespace haulout::agent
