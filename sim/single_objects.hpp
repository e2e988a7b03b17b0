// GET, POST, PUT, PATCH and DELETE of single objects on the simulated API server, with the real server's validation and
// responses. Also the functions that apply patches. No I/O.
#pragma once

#include <optional>
#include <string>

#include "sim/call.hpp"
#include "sim/status_bodies.hpp"
#include "sim/texts.hpp"
#include "sim/world.hpp"

namespace haulout::sim {

// Each function returns the server's response to the call, also if that is a refusal. Borrows the world, and `texts`,
// the cache of whole objects.
class SingleObjects {
 public:
  SingleObjects(World& world, Texts& texts) : world_(world), texts_(texts) {}

  http::Response get(const Call& call) const;
  http::Response get_scale(const Call& call) const;
  http::Response create(const Call& call);
  http::Response update(const Call& call);
  http::Response patch(const Call& call);
  http::Response remove(const Call& call);

 private:
  std::optional<StatusBody> namespace_problem(const Call& call) const;

  World& world_;
  Texts& texts_;
};

// Applies a JSON merge patch (RFC 7386) to `target`.
void merge_patch(Json& target, const Json& patch);
// Applies a strategic merge patch to `target`: like merge_patch(), but merges lists of conditions (by type), taints (by
// key and effect) and ownerReferences (by uid). {"$patch": "delete"} removes an entry from them.
void strategic_merge_patch(Json& target, const Json& patch);

// Records `manager` in metadata.managedFields as the manager that has set spec.unschedulable of a Node. If
// spec.unschedulable is not true, only removes the old record.
void book_unschedulable(Json& node, const std::string& manager, WallTime now);

}  // namespace haulout::sim
