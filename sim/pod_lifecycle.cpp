#include "sim/pod_lifecycle.hpp"

#include "k8s/codec.hpp"
#include "k8s/objects.hpp"

namespace haulout::sim {
namespace {

std::int64_t first_grace(const Json& pod, std::optional<std::int64_t> wanted) {
  if (text(pod, "/spec/nodeName").empty() || pod_finished(pod)) return 0;
  if (wanted) return *wanted < 0 ? 1 : *wanted;
  return number(pod, "/spec/terminationGracePeriodSeconds", 30);
}

void set_deletion(Json& pod, WallTime when, std::int64_t grace) {
  pod["metadata"]["deletionTimestamp"] = k8s::format_time(when);
  pod["metadata"]["deletionGracePeriodSeconds"] = grace;
}

// Returns the state of the pod after a request to delete it; nullopt if the request changes nothing.
std::optional<Json> terminating_state(const World& world, const Json& pod, std::optional<std::int64_t> wanted) {
  Json next = pod;
  if (!terminating(pod)) {
    const std::int64_t grace = first_grace(pod, wanted);
    set_deletion(next, world.wall_now() + k8s::grace_period(grace), grace);
    if (grace > 0) next["metadata"]["generation"] = number(pod, "/metadata/generation", 1) + 1;
    return next;
  }
  const std::int64_t old_grace = number(pod, "/metadata/deletionGracePeriodSeconds");
  if (!wanted) return std::nullopt;
  const std::int64_t grace = *wanted < 0 ? 1 : *wanted;
  if (grace >= old_grace) return std::nullopt;
  const auto end = k8s::parse_time(text(pod, "/metadata/deletionTimestamp"));
  set_deletion(next, grace == 0 ? world.wall_now() : end.value() - k8s::grace_period(old_grace - grace), grace);
  return next;
}

Deletion delete_pod(World& world, const Key& key, const Object& pod, std::optional<std::int64_t> grace_seconds) {
  const bool was_terminating = terminating(*pod);
  auto next = terminating_state(world, *pod, grace_seconds);
  const bool asked_for_it = next || !was_terminating || (grace_seconds && *grace_seconds == 0);
  Object written = next ? world.store.update(key, *std::move(next)) : pod;
  const bool no_grace_left = number(*written, "/metadata/deletionGracePeriodSeconds") == 0;
  if (no_grace_left && asked_for_it && !has_finalizers(*written)) return {world.store.remove(key), true};
  return {written, false};
}

}  // namespace

Deletion delete_gracefully(World& world, const Key& key, std::optional<std::int64_t> grace_seconds) {
  const Object object = world.store.get(key);
  if (!object) return {};
  if (key.resource == "pods") return delete_pod(world, key, object, grace_seconds);
  if (!has_finalizers(*object)) return {world.store.remove(key), true};
  const WallTime now = world.wall_now();
  Object written = world.store.modify(key, [&](Json& next) {
    if (!terminating(next)) set_deletion(next, now, 0);
  });
  return {written, false};
}

void mark_disruption_target(World& world, const Key& pod, const std::string& manager) {
  const Object object = world.store.get(pod);
  const Json& present = condition(*object, "DisruptionTarget");
  if (text(present, "/status") == "True" && text(present, "/reason") == "EvictionByEvictionAPI") return;
  world.store.modify(pod, [&](Json& next) {
    set_condition(next,
                  object_of({{"type", "DisruptionTarget"},
                             {"status", "True"},
                             {"reason", "EvictionByEvictionAPI"},
                             {"message", "Eviction API: evicting"}}),
                  world.wall_now());
    next["metadata"]["managedFields"].push_back(
        object_of({{"manager", manager}, {"operation", "Update"}, {"apiVersion", "v1"}, {"subresource", "status"}}));
  });
}

}  // namespace haulout::sim
