// Finds out by trial requests which Node this agent serves, and what restricts it to that Node. Changes nothing: every
// write is a dry run. Trial evictions name a pod that does not exist, or a UID that no pod has.
//
// Chooses the best authority that works, or tries only the one that the options request. An authority that restricts
// the agent works only if the server refuses a write that it has to refuse. So a cluster without the admission plug-in
// NodeRestriction, or without the policies, does not pass for one that has them. The search chooses a plain
// ServiceAccount only if the options request it.
//
// Errors: if the API server is away or busy, an error for which k8s::is_transient() is true; the caller tries again
// later. All other errors are final, and need a person: Errc::invalid (node-name), Errc::unavailable (no authority
// works, or the Node does not exist), or the server's error. After the first 403 the search waits one second and
// repeats that request, because a server that has just started refuses requests that it allows later. Cancellable.
#pragma once

#include "agent/authority/authority.hpp"
#include "http/transport.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

struct AuthorityOptions {
  AuthorityChoice wanted = AuthorityChoice::automatic;
  std::string node_name{};     // empty: the Node of the credential
  std::string ns = "haulout";  // namespace of Leases and ConfigMap
  SlotsChoice slots = SlotsChoice::lease;
};

// `transport` uses the credential without impersonation. Borrows `transport` and `clock` while it runs.
Task<Authority> find_authority(http::Transport& transport, Clock& clock, AuthorityOptions options, TimePoint deadline);

}  // namespace haulout::agent
