// A controller at the top, as one look-up of it tells. Pure.
#pragma once

#include <string>

#include "drain/controller_book.hpp"

namespace haulout::drain {

Controller controller_of(const k8s::OwnerReference& owner, const std::string& ns, k8s::Workload workload);
Controller gone_controller(const k8s::OwnerReference& owner, const std::string& ns);
Controller nothing_known_of(const k8s::OwnerReference& owner, const std::string& ns, std::string why);
// Its kind has no number of replicas.
Controller without_scale(const k8s::OwnerReference& owner, const std::string& ns, std::string why);

}  // namespace haulout::drain
