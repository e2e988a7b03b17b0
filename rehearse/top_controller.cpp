#include "rehearse/top_controller.hpp"

namespace haulout::rehearse {
namespace {

// Anybody who may write ReplicaSets or Jobs can make them own each other in a circle. Otherwise there are two levels.
constexpr unsigned most_levels = 10;

// Returns the object that the reference names; null if the store has none, or another one of this name.
sim::Object object_of(const sim::Store& store, const std::string& ns, const sim::Json& reference) {
  const sim::ResourceInfo* info = sim::find_kind(sim::text(reference, "/kind"));
  sim::Object object =
      info ? store.get({std::string(info->resource), ns, sim::text(reference, "/name")}) : sim::Object();
  return object && sim::uid_of(*object) == sim::text(reference, "/uid") ? object : nullptr;
}

}  // namespace

TopController top_controller(const sim::Store& store, const std::string& ns, const sim::Json& reference) {
  TopController above;
  sim::Json next = reference;
  for (unsigned level = 0; level < most_levels; ++level) {
    above = {ns,
             sim::text(next, "/kind"),
             sim::text(next, "/name"),
             sim::text(next, "/apiVersion"),
             sim::text(next, "/uid"),
             object_of(store, ns, next)};
    const bool goes_on = above.object && (above.kind == "ReplicaSet" || above.kind == "Job");
    const sim::Json& owner = goes_on ? sim::controller_of(*above.object) : sim::Json();
    if (owner.is_null()) break;
    next = owner;
  }
  return above;
}

}  // namespace haulout::rehearse
