#include "drain/cordon.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "k8s/codec.hpp"
#include "k8s/status.hpp"
#include "retry/backoff.hpp"

namespace haulout::drain {

namespace {

// The delays after a conflict with another writer, before the Node is read and the patch is built again. Conflicts are
// likely, because the controller manager writes the taint right after each change of the field.
constexpr BackoffOptions conflict_backoff{std::chrono::milliseconds(20), 2.0, std::chrono::seconds(2),
                                          BackoffOptions::Jitter::full};

// Applies the patch that `decide` returns for the current Node. After a conflict it reads the Node and calls `decide`
// again, until the deadline. If `decide` returns nullopt, changes nothing.
Task<CordonChange> apply(k8s::Client& client, Rng& rng, std::string name,
                         std::function<std::optional<std::string>(const k8s::Node&)> decide, k8s::DryRun dry_run,
                         TimePoint deadline) {
  Backoff backoff(conflict_backoff);
  for (;;) {
    CO_TRY(k8s::Node node, co_await client.get_node(name, deadline));
    const auto patch = decide(node);
    if (!patch) co_return CordonChange{node, node, false};
    auto patched = co_await client.patch_node(name, *patch, dry_run, deadline);
    if (patched) co_return CordonChange{std::move(node), *std::move(patched), true};
    if (!k8s::is_conflict(patched.error())) co_return std::move(patched).error();
    const TimePoint next = client.clock().now() + backoff.next(rng, patched.error().retry_after);
    if (next >= deadline) co_return std::move(patched).error();
    co_await client.clock().sleep_until(next);
  }
}

// Returns when the Node was cordoned, according to the taint that the cluster's controller manager adds; nullopt if
// unknown.
std::optional<WallTime> cordoned_since(const k8s::Node& node) {
  const auto taint = std::find_if(node.taints.begin(), node.taints.end(),
                                  [](const k8s::Taint& candidate) { return candidate.key == unschedulable_taint; });
  return taint == node.taints.end() ? std::nullopt : taint->time_added;
}

}  // namespace

CordonOwner cordon_owner(const k8s::Node& node) {
  if (!node.unschedulable) return CordonOwner::nobody;
  const auto mark = mark_of(node);
  if (!mark) return CordonOwner::other;
  if (!node.unschedulable_manager.empty())
    return node.unschedulable_manager == k8s::field_manager ? CordonOwner::haulout : CordonOwner::other;
  const auto tainted = cordoned_since(node);
  // The controller manager adds the taint milliseconds after a cordon. If there is none yet, the cordon is assumed to
  // be the one that Haulout has just made.
  if (!tainted) return CordonOwner::haulout;
  const auto distance = tainted > mark->at ? *tainted - mark->at : mark->at - *tainted;
  return distance <= mark_tolerance ? CordonOwner::haulout : CordonOwner::other;
}

bool is_another_cordon(const k8s::Node& before, const k8s::Node& after) {
  if (!before.unschedulable || !after.unschedulable) return false;
  const bool was_ours = before.unschedulable_manager == k8s::field_manager;
  const bool is_ours = after.unschedulable_manager == k8s::field_manager;
  const bool known = !before.unschedulable_manager.empty() && !after.unschedulable_manager.empty();
  if (known && was_ours != is_ours) return true;
  const auto was = mark_of(before);
  const auto is = mark_of(after);
  if (was_ours && is_ours && was && is) return was->run != is->run || was->at != is->at;
  // Each cordon gets its own taint, with its own time. The taint appears a moment after the field is set, so a missing
  // taint in `before` proves nothing.
  const auto tainted = cordoned_since(before);
  return tainted && tainted != cordoned_since(after);
}

Task<CordonChange> cordon(k8s::Client& client, Rng& rng, std::string node, std::string expected_uid, CordonMark mark,
                          k8s::DryRun dry_run, TimePoint deadline) {
  // cordon_owner() compares the times of mark and taint. The taint follows the patch that succeeds, perhaps long after
  // the first attempt, so each attempt sets the mark's time anew.
  auto decide = [mark, expected_uid, &client](const k8s::Node& current) mutable -> std::optional<std::string> {
    if (!expected_uid.empty() && current.uid != expected_uid) return std::nullopt;
    mark.at = client.server_now();
    return cordon_patch(current, mark);
  };
  co_return co_await apply(client, rng, std::move(node), decide, dry_run, deadline);
}

Task<CordonChange> uncordon(k8s::Client& client, Rng& rng, std::string node, bool foreign_too, k8s::DryRun dry_run,
                            TimePoint deadline) {
  auto decide = [foreign_too](const k8s::Node& current) { return uncordon_patch(current, foreign_too); };
  co_return co_await apply(client, rng, std::move(node), decide, dry_run, deadline);
}

Task<CordonChange> take_back(k8s::Client& client, Rng& rng, std::string node, std::string run, TimePoint deadline) {
  auto decide = [run = std::move(run)](const k8s::Node& current) { return take_back_patch(current, run); };
  co_return co_await apply(client, rng, std::move(node), decide, k8s::DryRun::none, deadline);
}

std::string encode_mark(const CordonMark& mark) {
  const nlohmann::ordered_json json = {{"run", mark.run}, {"by", mark.by}, {"at", k8s::format_time(mark.at)}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<CordonMark> mark_of(const k8s::Node& node) {
  const auto found = node.annotations.find(std::string(cordon_annotation));
  if (found == node.annotations.end()) return std::nullopt;
  const auto json = nlohmann::json::parse(found->second, nullptr, false);
  if (!json.is_object() || !json.contains("at") || !json["at"].is_string()) return std::nullopt;
  auto at = k8s::parse_time(json["at"].get<std::string>());
  if (!at) return std::nullopt;
  const auto text = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
  };
  return CordonMark{text("run"), text("by"), *at};
}

std::optional<std::string> cordon_patch(const k8s::Node& node, const CordonMark& mark) {
  if (node.unschedulable) return std::nullopt;
  const nlohmann::json patch = {{"metadata",
                                 {{"resourceVersion", node.resource_version},
                                  {"annotations", {{std::string(cordon_annotation), encode_mark(mark)}}}}},
                                {"spec", {{"unschedulable", true}}}};
  return patch.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<std::string> uncordon_patch(const k8s::Node& node, bool foreign_too) {
  const bool marked = node.annotations.contains(std::string(cordon_annotation));
  const CordonOwner owner = cordon_owner(node);
  const bool clear_field = owner == CordonOwner::haulout || (owner == CordonOwner::other && foreign_too);
  if (!clear_field && !marked) return std::nullopt;
  nlohmann::json patch = {{"metadata", {{"resourceVersion", node.resource_version}}}};
  if (marked) patch["metadata"]["annotations"] = {{std::string(cordon_annotation), nullptr}};
  if (clear_field) patch["spec"] = {{"unschedulable", nullptr}};
  return patch.dump();
}

std::optional<std::string> take_back_patch(const k8s::Node& node, const std::string& run) {
  const auto mark = mark_of(node);
  if (!mark || mark->run != run) return std::nullopt;
  return uncordon_patch(node, false);
}

}  // namespace haulout::drain
