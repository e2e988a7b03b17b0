// Who calls the simulated API server, what the caller may do, and the review APIs that answer these two questions. The
// functions read the current state of the world and change nothing. No I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/call.hpp"
#include "sim/world.hpp"

namespace haulout::sim {

// caller_of() returns the identity that belongs to the token of the call, or null if there is none. user_of() returns
// its name, or else the user of the switches.
const Identity* caller_of(const Switches& switches, const Call& call);
std::string user_of(const Switches& switches, const Call& call);

// Checks in the order of the server: shutdown, throttling, authentication, authorization, NodeRestriction. Returns the
// refusal, or nullopt if the request may go on.
std::optional<http::Response> refused_to_caller(const World& world, const Call& call);
// Answers a SelfSubjectAccessReview or SelfSubjectReview. Returns nullopt if the call is neither.
std::optional<http::Response> review(const World& world, const Call& call);

// What a kubelet's credential may do: kube-apiserver's Node authorizer and its admission plug-in NodeRestriction, with
// the answers of 1.36. A node may access its own Node, the pods that are bound to it, their claims and volumes, and the
// VolumeAttachments that name it. For any other object it gets 403, not 404, so that it cannot find out whether the
// object exists. It also gets 403 when it reads such a pod, claim, volume or VolumeAttachment after its deletion.

// Returns <name> if the user is "system:node:<name>", the user of that node's kubelet; empty for any other user.
std::string node_of_user(std::string_view user);
// Returns the refusal of the Node authorizer; nullopt if it allows the call.
std::optional<http::Response> refused_to_node(const Store& store, const Call& call, const std::string& node);
// Returns the refusal of NodeRestriction; nullopt if it admits the call.
std::optional<http::Response> restricted_for_node(const Store& store, const Call& call, const std::string& node);

}  // namespace haulout::sim
