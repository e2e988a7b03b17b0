// The Node that an agent serves: that very object, not a namesake that comes after it.
#pragma once

#include <string>

namespace haulout::agent {

struct OwnNode {
  std::string name;
  std::string uid;
  // How it signs a turn.
  std::string holder() const { return name + "/" + uid; }
  bool operator==(const OwnNode&) const = default;
};

}  // namespace haulout::agent
