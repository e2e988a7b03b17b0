// Requests for the Leases in which slots are stored, for the agent of a node (lease_slots.hpp) and for the server that
// gives machines slots (fleetlock_service.hpp). The errors are those of k8s::Client. Cancellable. All functions borrow
// the client.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "k8s/client.hpp"
#include "k8s/lease.hpp"
#include "retry/task.hpp"

namespace haulout::agent {

// Returns a most-recent list of the Leases of slots of all pools in the namespace, without those that have lost their
// label (is_unlisted()).
Task<std::vector<k8s::Lease>> list_slots(k8s::Client& client, std::string ns, TimePoint deadline);

// Deletes the Lease if it is still in this state. Succeeds also if it was changed or deleted meanwhile: the caller
// lists the Leases again.
Task<> delete_slot(k8s::Client& client, k8s::Lease slot, TimePoint deadline);

// Deletes the Leases that `own` lists, until it lists none. Returns whether it has listed any. Also fails with
// Errc::timeout, and names the Lease, if one still exists when the deadline is near.
using OwnSlots = std::function<Task<std::vector<k8s::Lease>>(TimePoint deadline)>;
Task<bool> delete_slots(k8s::Client& client, OwnSlots own, TimePoint deadline);

}  // namespace haulout::agent
