// The callers of the simulated API server and their rights, and the review APIs that return both. The functions read
// the current state of the world and change nothing. No I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/call.hpp"
#include "sim/world.hpp"

namespace haulout::sim {

// caller_of() returns the identity that belongs to the token of the call; nullptr if the token is missing, unknown or
// no longer valid. user_of() returns the name of that identity, or Switches::user if there is none.
const Identity* caller_of(const Switches& switches, const Call& call);
std::string user_of(const Switches& switches, const Call& call);

// Checks in the order of the real server: shutdown, throttling, authentication, authorization, NodeRestriction. Returns
// the response with the refusal; nullopt if the request may go on.
std::optional<http::Response> refused_to_caller(const World& world, const Call& call);
// Returns the response to a SelfSubjectAccessReview or SelfSubjectReview; nullopt if the call is neither.
std::optional<http::Response> review(const World& world, const Call& call);

// The functions below check the requests of a kubelet's credential: kube-apiserver's Node authorizer and its admission
// plug-in NodeRestriction, with the responses of 1.36. Of the Nodes, pods, claims, volumes and VolumeAttachments, a
// node may read its own Node, the pods that are bound to it, the claims and volumes of these pods, and the
// VolumeAttachments that name it. For all others the response is 403, not 404, so that the node cannot find out whether
// they exist. It is also 403 if the node reads one of its own pods, claims, volumes or VolumeAttachments after the
// deletion of this object.

// Returns <name> if the user is "system:node:<name>", the user of that node's kubelet. Returns an empty string for
// other users.
std::string node_of_user(std::string_view user);
// Returns the refusal of the Node authorizer; nullopt if it allows the call.
std::optional<http::Response> refused_to_node(const Store& store, const Call& call, const std::string& node);
// Returns the refusal of NodeRestriction; nullopt if it admits the call.
std::optional<http::Response> restricted_for_node(const Store& store, const Call& call, const std::string& node);

}  // namespace haulout::sim
