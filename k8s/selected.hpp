// Whether a server's answer is about what was asked for: an object has the fields that the field selector of its list
// or watch demands, a Node the labels. A proxy that ignores selectors must not make other nodes' pods ours. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "k8s/objects.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

// Errc::decode for an object that the selector does not select. Knows metadata.name, and spec.nodeName of a Pod, each
// as the only demand; of any other selector the server's word counts.
template <class T>
Result<> check_selected(std::string_view field_selector, const T& object);

// Likewise of a list by labels. Of a selector that we cannot read the server's word counts, as of a Node of whose
// labels not all are kept: it must not keep the others from being seen.
Result<> check_labels(std::string_view label_selector, const std::vector<Node>& nodes);

// Likewise of the answer to a request for one object.
Result<Node> only_named(std::string_view name, Result<Node> answer);

}  // namespace haulout::k8s
