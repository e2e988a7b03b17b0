// Makes pods from a controller's template. Pure.
#pragma once

#include <string>

#include "sim/objects.hpp"

namespace haulout::sim {

// Returns an ownerReference to `owner`, with controller: true.
Json owner_reference(const Json& owner);

// Returns a pod with this name. The API server and its admission plug-ins write fields into pods that the template does
// not have (LimitRange, overhead of the RuntimeClass, priority, sidecars that a webhook adds). These fields are copied
// from `sibling`, a pod of the same controller. If `sibling` is null, resource requests that are missing get the value
// of their limits, as every API server sets them.
Json pod_of_template(const Json& controller, const Json& sibling, const std::string& name);

}  // namespace haulout::sim
