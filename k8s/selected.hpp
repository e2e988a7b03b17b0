// Checks that a server's answer is about the requested objects: they have the fields that the field selector of the
// list or watch requires, and Nodes have the labels. A proxy that ignores selectors must not make pods of other nodes
// look like pods of this node. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "k8s/objects.hpp"
#include "retry/task.hpp"

namespace haulout::k8s {

// Errc::decode if the selector does not select the object. Checks only a selector that is exactly `metadata.name=…`, or
// `spec.nodeName=…` of a Pod. Any other selector is not checked.
template <class T>
Result<> check_selected(std::string_view field_selector, const T& object);

// Errc::decode if the label selector does not select one of the Nodes. A selector that cannot be parsed is not checked.
// A Node whose labels may have been cut is not checked either: it must not make the whole list fail.
Result<> check_labels(std::string_view label_selector, const std::vector<Node>& nodes);

// Returns the answer to a request for one Node; Errc::decode if it is another Node.
Result<Node> only_named(std::string_view name, Result<Node> answer);

}  // namespace haulout::k8s
