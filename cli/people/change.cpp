#include "cli/people/change.hpp"

#include "agent/gates/pause.hpp"
#include "k8s/objects.hpp"
#include "k8s/status.hpp"
#include "retry/backoff.hpp"

namespace haulout::cli {

namespace {

constexpr BackoffOptions conflict_backoff{std::chrono::milliseconds(20), 2.0, std::chrono::seconds(2),
                                          BackoffOptions::Jitter::full};

// Waits for the backoff and returns true. Returns false, without waiting, if the backoff would end after the deadline.
boost::asio::awaitable<bool> another_try(k8s::Client& client, Backoff& backoff, Rng& rng, TimePoint deadline) {
  const TimePoint next = client.clock().now() + backoff.next(rng);
  if (next >= deadline) co_return false;
  co_await client.clock().sleep_until(next);
  co_return true;
}

// Sets or removes the key in the ConfigMap `found`; fails with 409 if it has changed since it was read. If `found` is
// unset, creates the ConfigMap; `value` must be set then.
Task<k8s::ConfigMap> write_entry(k8s::Client& client, std::optional<k8s::ConfigMap> found, std::string ns,
                                 std::string key, std::optional<std::string> value, TimePoint deadline) {
  if (found) {
    const std::string patch = entry_patch(*found, key, value);
    co_return co_await client.patch<k8s::ConfigMap>(ns, std::string(agent::pause_config_map), patch, deadline);
  }
  k8s::ConfigMap made;
  made.ns = ns;
  made.name = agent::pause_config_map;
  made.data.emplace(key, *value);
  co_return co_await client.create<k8s::ConfigMap>(std::move(made), deadline);
}

}  // namespace

Task<NodeChange> change_annotation(k8s::Client& client, Rng& rng, std::string node, std::string key,
                                   std::optional<std::string> value, TimePoint deadline) {
  Backoff backoff(conflict_backoff);
  for (;;) {
    CO_TRY(k8s::Node found, co_await client.get_node(node, deadline));
    std::optional<std::string> before = k8s::value_at(found.annotations, key);
    if (before == value) co_return NodeChange{std::move(found), std::move(before), false};
    const std::string patch = annotation_patch(found, key, value);
    auto patched = co_await client.patch_node(node, patch, k8s::DryRun::none, deadline);
    if (patched) co_return NodeChange{*std::move(patched), std::move(before), true};
    if (!k8s::is_conflict(patched.error())) co_return std::move(patched).error();
    if (!co_await another_try(client, backoff, rng, deadline)) co_return std::move(patched).error();
  }
}

Task<EntryChange> change_entry(k8s::Client& client, Rng& rng, std::string ns, std::string key,
                               std::optional<std::string> value, TimePoint deadline) {
  Backoff backoff(conflict_backoff);
  for (;;) {
    std::optional<k8s::ConfigMap> map;
    auto read = co_await client.get<k8s::ConfigMap>(ns, std::string(agent::pause_config_map), deadline);
    if (read)
      map = *std::move(read);
    else if (!k8s::is_gone(read.error()))
      co_return std::move(read).error();
    std::optional<std::string> before = map ? k8s::value_at(map->data, key) : std::nullopt;
    if (before == value)
      co_return EntryChange{map ? std::move(map->data) : std::map<std::string, std::string>(), std::move(before),
                            false};
    const bool was_there = map.has_value();
    auto written = co_await write_entry(client, std::move(map), ns, key, value, deadline);
    if (written) co_return EntryChange{std::move(written->data), std::move(before), true};
    // Retry if another client has created, changed or deleted the ConfigMap since it was read.
    const bool raced = k8s::is_conflict(written.error()) || k8s::is_already_exists(written.error()) ||
                       (was_there && k8s::is_gone(written.error()));
    if (!raced) co_return std::move(written).error();
    if (!co_await another_try(client, backoff, rng, deadline)) co_return std::move(written).error();
  }
}

}  // namespace haulout::cli
