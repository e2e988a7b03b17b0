// Results of looking up a pod's top-level controller, for example the Deployment above a ReplicaSet. Pure.
#pragma once

#include <string>

#include "drain/controller_book.hpp"

namespace haulout::drain {

Controller controller_of(const k8s::OwnerReference& owner, const std::string& ns, k8s::Workload workload);
Controller gone_controller(const k8s::OwnerReference& owner, const std::string& ns);
Controller nothing_known_of(const k8s::OwnerReference& owner, const std::string& ns, std::string why);
// For a controller whose kind has no number of replicas, or whose API is not served.
Controller without_scale(const k8s::OwnerReference& owner, const std::string& ns, std::string why);

}  // namespace haulout::drain
