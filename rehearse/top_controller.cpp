#include "rehearse/top_controller.hpp"

namespace haulout::rehearse {
namespace {

// Returns the object that the reference names; null if the store has none, or another one of this name.
sim::Object object_of(const sim::Store& store, const std::string& ns, const sim::Json& reference) {
  const sim::ResourceInfo* info = sim::find_kind(sim::text(reference, "/kind"));
  sim::Object object =
      info ? store.get({std::string(info->resource), ns, sim::text(reference, "/name")}) : sim::Object();
  return object && sim::uid_of(*object) == sim::text(reference, "/uid") ? object : nullptr;
}

}  // namespace

TopController top_controller(const sim::Store& store, const std::string& ns, const sim::Json& reference) {
  TopController above{ns,
                      sim::text(reference, "/kind"),
                      sim::text(reference, "/name"),
                      sim::text(reference, "/apiVersion"),
                      sim::text(reference, "/uid"),
                      object_of(store, ns, reference)};
  const bool goes_on = above.object && (above.kind == "ReplicaSet" || above.kind == "Job");
  const sim::Json& next = goes_on ? sim::controller_of(*above.object) : sim::Json();
  return goes_on && !next.is_null() ? top_controller(store, ns, next) : above;
}

}  // namespace haulout::rehearse
