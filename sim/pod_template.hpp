// What becomes of a controller's template until it is a pod. Pure.
#pragma once

#include <string>

#include "sim/objects.hpp"

namespace haulout::sim {

// To whom it belongs, and who alone controls it.
Json owner_reference(const Json& owner);

// A pod of that name. What the API server and its admission write into Pods and into no template (LimitRange, overhead
// of the RuntimeClass, priority, sidecars that a webhook adds) is as in `sibling`, a pod of the same controller.
// Without one, null, containers request what they are limited to: that much every API server does.
Json pod_of_template(const Json& controller, const Json& sibling, const std::string& name);

}  // namespace haulout::sim
