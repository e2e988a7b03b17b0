// Finds out who this agent is and what keeps it to its own Node, by trying. Nothing is changed: every write is a dry
// run, and those that concern pods name none that is there, or none that is.
//
// The best authority that works is taken, or the one that was asked for. One that holds the agent counts as working
// only when a write that it has to refuse is refused: a cluster without the admission plug-in NodeRestriction, or
// without the policies, must not pass for one that has them. A plain ServiceAccount is never taken unless it was asked
// for.
//
// Errors: while the API server is away or busy, the one that k8s::is_transient() knows: ask again later. Any other is
// for people, and final: Errc::invalid (node-name), Errc::unavailable (no authority, or the Node is not there), or what
// the server said. The first 403 is doubted for a second: a server that has just started refuses what it will allow.
// Cancellable.
#pragma once

#include "agent/authority/authority.hpp"
#include "http/transport.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

struct AuthorityOptions {
  AuthorityChoice wanted = AuthorityChoice::automatic;
  std::string node_name{};     // empty: the one of the credential
  std::string ns = "haulout";  // of Leases and ConfigMap
  SlotsChoice slots = SlotsChoice::lease;
};

// `transport` speaks with the credential and impersonates nobody. Borrows it and the clock while it runs.
Task<Authority> find_authority(http::Transport& transport, Clock& clock, AuthorityOptions options, TimePoint deadline);

}  // namespace haulout::agent
