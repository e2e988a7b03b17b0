// The Node that an agent serves. The UID distinguishes it from a later Node of the same name. Pure.
#pragma once

#include <string>

namespace haulout::agent {

struct OwnNode {
  std::string name;
  std::string uid;
  // The holder that this node writes into the Lease of its slot.
  std::string holder() const { return name + "/" + uid; }
  bool operator==(const OwnNode&) const = default;
};

}  // namespace haulout::agent
