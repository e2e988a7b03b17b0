// What a kubelet's credential may do: kube-apiserver's Node authorizer and its admission plug-in NodeRestriction, with
// the answers of 1.36. A node reaches its own Node, the pods that are bound to it, their claims and volumes, and the
// VolumeAttachments that name it; of what it does not reach it is not told whether it exists: 403, not 404, also after
// a deletion. Pure; both see the storage as it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/call.hpp"
#include "sim/store.hpp"

namespace haulout::sim {

// The node of "system:node:<name>"; empty for anybody else.
std::string node_of_user(std::string_view user);

// The authorizer's refusal; nothing when the call may go on.
std::optional<http::Response> refused_to_node(const Store& store, const Call& call, const std::string& node);
// That of NodeRestriction.
std::optional<http::Response> restricted_for_node(const Store& store, const Call& call, const std::string& node);

}  // namespace haulout::sim
