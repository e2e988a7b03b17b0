#include "cli/people/steering_job.hpp"

#include <fmt/format.h>

#include "agent/gates/pause.hpp"
#include "agent/node/node_status.hpp"
#include "agent/process/process.hpp"
#include "agent/slots/slot_rules.hpp"
#include "base/text.hpp"
#include "cli/people/views.hpp"
#include "drain/eviction_request_feed.hpp"
#include "drain/surge_feed.hpp"
#include "k8s/objects.hpp"
#include "k8s/status.hpp"
#include "retry/backoff.hpp"

namespace haulout::cli {
namespace asio = boost::asio;

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

namespace {

std::string paused_line(const std::string& subject, const agent::Pause& pause,
                        const std::optional<agent::Pause>& before, bool changed) {
  if (!changed) return fmt::format("{} already {}", subject, describe(pause));
  std::string line = fmt::format("{} {}", subject, describe(pause));
  if (before) line += fmt::format(" (was {})", describe(*before));
  return line;
}

std::string resumed_line(const std::string& subject, const std::optional<agent::Pause>& before) {
  return before ? fmt::format("{} resumed (was {})", subject, describe(*before)) : subject + " is not paused";
}

// Returns what a key of the ConfigMap pauses: "cluster" or "pool/NAME". Returns nullopt if the key is not a pause.
std::optional<std::string> subject_of(std::string_view key) {
  if (key == agent::pause_key()) return "cluster";
  const std::string prefix = agent::pause_key("x").substr(0, agent::pause_key("x").size() - 1);
  if (!key.starts_with(prefix)) return std::nullopt;
  return "pool/" + std::string(key.substr(prefix.size()));
}

}  // namespace

// Returns the time of --until or --at, named `flag`; nothing if it is not given. Fails if the time has passed. A
// duration counts from the server's clock, and is rounded up to whole seconds, so that it is not shorter than given.
Result<std::optional<WallTime>> given_time(const PeopleSettings& asked, std::string_view flag, WallTime now) {
  if (!asked.time) return std::optional<WallTime>();
  const auto* time = std::get_if<WallTime>(&*asked.time);
  const WallTime at = time ? *time : std::chrono::ceil<std::chrono::seconds>(now + std::get<Duration>(*asked.time));
  if (at <= now)
    return Error(Errc::invalid,
                 fmt::format("{} {} is in the past: it is {} now", flag, k8s::format_time(at), k8s::format_time(now)));
  return std::optional(at);
}

// Agents compare times with the server's clock, so a duration must count from that clock. The response to this request
// shows the server's time. A failure is ignored.
asio::awaitable<void> learn_time(k8s::Client& client, const PeopleSettings& asked, TimePoint deadline) {
  if (asked.time && std::holds_alternative<Duration>(*asked.time))
    static_cast<void>(co_await client.review_self(deadline));
}

Result<agent::Pause> PauseJob::wanted() const {
  const PeopleSettings& asked = settings_.people;
  const std::string& who = settings_.drain.cordoned_by;
  auto until = given_time(asked, "--until", tools_.client.server_now());
  if (!until) return std::move(until).error();
  return agent::Pause{asked.reason.empty() ? "by " + who : fmt::format("{} ({})", asked.reason, who), *until};
}

asio::awaitable<void> PauseJob::run() {
  if (pausing()) {
    co_await learn_time(tools_.client, settings_.people, deadline());
    auto pause = wanted();
    if (!pause) {
      failed(pause.error());
      co_return;
    }
    pause_ = *std::move(pause);
  }
  if (settings_.people.pool.empty() && !settings_.people.all) {
    co_await NodeByNodeJob::run();
    co_return;
  }
  const std::string ns = settings_.haulout_namespace();
  auto done = co_await act_on_key();
  if (done) co_return;
  const bool no_namespace = k8s::is_gone(done.error());
  failed(std::move(done).error().with_context(fmt::format("ConfigMap {}/{}", ns, agent::pause_config_map)));
  if (no_namespace) tools_.console.warn("if Haulout is installed in another namespace, name it with -n");
}

Task<> PauseJob::act_on_key() {
  const std::string& pool = settings_.people.pool;
  const std::string key = agent::pause_key(pool);
  const std::string subject = pool.empty() ? "cluster" : "pool/" + pool;
  const auto value = pause_ ? std::optional(format_pause_json(*pause_)) : std::nullopt;
  CO_TRY(const EntryChange change,
         co_await change_entry(tools_.client, tools_.rng, settings_.haulout_namespace(), key, value, deadline()));
  const auto before = change.before ? std::optional(agent::parse_pause_json(key, *change.before)) : std::nullopt;
  tools_.console.say(pause_ ? paused_line(subject, *pause_, before, change.changed) : resumed_line(subject, before));
  if (!pause_) warn_of_others(change.data, key, pool);
  co_return Result<>();
}

Task<> PauseJob::act(std::string node) {
  const auto value = pause_ ? std::optional(format_pause_annotation(*pause_)) : std::nullopt;
  CO_TRY(const NodeChange change, co_await change_annotation(tools_.client, tools_.rng, node,
                                                             std::string(agent::pause_annotation), value, deadline()));
  const auto before = change.before ? std::optional(agent::parse_pause_annotation(*change.before)) : std::nullopt;
  const std::string subject = "node/" + node;
  tools_.console.say(pause_ ? paused_line(subject, *pause_, before, change.changed) : resumed_line(subject, before));
  const std::string state = state_shown(change.node);
  if (pause_) {
    if (state.empty())
      tools_.console.warn(
          fmt::format("Warning: no agent has reported on node/{} yet; the pause takes effect when one does", node));
    else if (is_under_way(state))
      tools_.console.warn(
          fmt::format("Warning: node/{} is already being updated (state {}); the pause cancels the update, unless its "
                      "installation after the drain or its reboot has begun",
                      node, state));
    co_return Result<>();
  }
  // A failure is ignored: a user with the right to resume a node may lack the right to read the ConfigMap.
  const auto map = co_await tools_.client.get<k8s::ConfigMap>(settings_.haulout_namespace(),
                                                              std::string(agent::pause_config_map), deadline());
  if (map) warn_of_others(map->data, {}, agent::told_pool(change.node).value_or(""));
  co_return Result<>();
}

void PauseJob::warn_of_others(const std::map<std::string, std::string>& entries, const std::string& but,
                              const std::string& pool) const {
  const WallTime now = tools_.client.server_now();
  for (const auto& [key, value] : entries) {
    const auto subject = subject_of(key);
    // Warn about the pause of a pool only if this command has resumed the cluster, or a node of that pool.
    const bool concerns =
        key == agent::pause_key() || settings_.people.all || (!pool.empty() && key == agent::pause_key(pool));
    if (key == but || !subject || !concerns) continue;
    const agent::Pause pause = agent::parse_pause_json(key, value);
    if (!in_force(pause, now)) continue;
    const bool cluster = key == agent::pause_key();
    tools_.console.warn(fmt::format("Warning: {} is still {}; to end that pause, run {} resume {}", *subject,
                                    describe(pause), tools_.program,
                                    cluster ? "--all" : "--pool " + subject->substr(std::string("pool/").size())));
  }
}

Task<> ReleaseJob::act(std::string node) {
  CO_TRY(const drain::GivenBack given,
         co_await drain::give_back_surged(tools_.client, tools_.rng, node, {}, deadline()));
  for (const std::string& pod : given.pods) tools_.console.say(fmt::format("pod/{} given back to its ReplicaSet", pod));
  for (const auto& left : given.left)
    tools_.console.warn(
        printable(fmt::format("error: pod/{} could not be given back to its ReplicaSet: {}", left.pod, left.why)));
  const bool any = !given.pods.empty() || !given.left.empty();
  const auto found = co_await tools_.client.get_node(node, deadline());
  // A node that does not exist has no pods, either. Its name may be wrong.
  if (!found && !any) co_return found.error();
  auto withdrawn = found ? co_await drain::withdraw_requests(tools_.client, tools_.rng, found->uid, {}, deadline())
                         : Result<drain::Withdrawn>(found.error());
  if (!withdrawn && !k8s::is_forbidden(withdrawn.error()) && !any) co_return std::move(withdrawn).error();
  // A server that does not serve EvictionRequests responds so, too, to a user who may not list them.
  if (!withdrawn)
    tools_.console.warn(
        printable("warning: it is not known whether EvictionRequests are left: " + withdrawn.error().message()));
  const drain::Withdrawn requests = withdrawn ? *std::move(withdrawn) : drain::Withdrawn();
  for (const std::string& pod : requests.pods)
    tools_.console.say(fmt::format("pod/{}: its EvictionRequest was withdrawn", pod));
  for (const auto& left : requests.left)
    tools_.console.warn(
        printable(fmt::format("error: pod/{}: its EvictionRequest could not be withdrawn: {}", left.pod, left.why)));
  if (!given.left.empty() || !requests.left.empty()) exit_code_ = std::max(exit_code_, agent::exit_not_done);
  if (!any && requests.pods.empty() && requests.left.empty())
    tools_.console.say(fmt::format("node/{} has no pod to give back", node));
  co_return Result<>();
}

asio::awaitable<void> RequestJob::run() {
  // Agents compare the time with the server's clock, and the clock here may be wrong. A failure is ignored.
  if (settings_.people.time) static_cast<void>(co_await tools_.client.review_self(deadline()));
  auto at = given_time(settings_.people, "--at", tools_.client.server_now());
  if (!at) {
    failed(at.error());
    co_return;
  }
  at_ = *at;
  co_await NodeByNodeJob::run();
}

Task<> RequestJob::act(std::string node) {
  CO_TRY(const k8s::Node found, co_await tools_.client.get_node(node, deadline()));
  const std::string state = state_shown(found);
  if (state.empty()) {
    exit_code_ = std::max(exit_code_, agent::exit_not_done);
    tools_.console.warn(fmt::format(
        "error: no agent has reported on node/{}, so no agent would reboot it: nothing was requested", node));
    co_return Result<>();
  }
  const auto before = agent::reboot_request(found);
  const auto words = [](WallTime at) { return at == WallTime::min() ? "" : " for " + k8s::format_time(at); };
  if (before && before == at_.value_or(WallTime::min())) {
    tools_.console.say(
        fmt::format("a reboot of node/{} was already requested{} (state {})", node, words(*before), state));
    co_return Result<>();
  }
  const std::string& who = settings_.drain.cordoned_by;
  const std::string& reason = settings_.people.reason;
  std::string value = agent::written_request(at_);
  if (!reason.empty()) value += fmt::format("; {} ({})", reason, who);
  CO_CHECK(co_await change_annotation(tools_.client, tools_.rng, node, std::string(agent::request_annotation), value,
                                      deadline()));
  tools_.console.say(fmt::format("reboot of node/{} requested{}{} (state {})", node, at_ ? words(*at_) : "",
                                 before ? fmt::format(", in place of the request{}", words(*before)) : "", state));
  if (state == to_string(agent::State::degraded))
    tools_.console.warn(
        fmt::format("Warning: node/{0} is degraded, and its agent may reboot it {2}; `{1} explain {0}` shows why it "
                    "is degraded. To cancel the request: kubectl annotate node {0} {3}-",
                    node, tools_.program, at_ ? "at that time" : "soon", agent::request_annotation));
  co_return Result<>();
}

}  // namespace haulout::cli
