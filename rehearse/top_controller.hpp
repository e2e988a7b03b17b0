// Finds the controller to which people say that a pod belongs: the Deployment, and not its ReplicaSet. Reads the store
// only.
#pragma once

#include <string>

#include "sim/store.hpp"

namespace haulout::rehearse {

struct TopController {
  std::string ns;
  std::string kind;
  std::string name;
  std::string api_version;
  std::string uid;
  sim::Object object;  // null if it is not in the store
};

// Returns the topmost controller at or above `reference`, an owner reference of an object in the namespace. Looks for a
// controller only above ReplicaSets and Jobs.
TopController top_controller(const sim::Store& store, const std::string& ns, const sim::Json& reference);

}  // namespace haulout::rehearse
