#include "agent/gates/node_gates.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/node/node_status.hpp"
#include "base/scope_exit.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"
#include "k8s/objects.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {

namespace asio = boost::asio;

namespace {

constexpr std::uint32_t page = 500;

std::string on_node(const std::string& node) {
  return "spec.nodeName=" + node;
}

}  // namespace

Task<std::vector<k8s::Pod>> BlockingPods::list(std::string selector, TimePoint deadline) {
  k8s::ListOptions options;
  options.field_selector = on_node(node_);
  options.label_selector = std::move(selector);
  options.limit = page;
  CO_TRY(auto pods, co_await respite_.ask([&] { return client_.list<k8s::Pod>(std::move(options), deadline); }));
  co_return std::move(pods.items);
}

asio::awaitable<Gate> BlockingPods::judge(TimePoint deadline) {
  Gate gate{.name = "blocking-pods", .message = "no pod of this node matches --blocking-pod-selector"};
  if (selectors_.empty()) {
    gate.verdict = Gate::Verdict::off;
    gate.message = "no --blocking-pod-selector is set";
    co_return gate;
  }
  seen_.assign(selectors_.size(), {});
  std::string first;
  std::set<std::string> matching;
  for (std::size_t i = 0; i < selectors_.size(); ++i) {
    auto pods = co_await list(selectors_[i], deadline);
    if (!pods) {
      gate.verdict = Gate::Verdict::closed;
      gate.reason = reason::blocking_pods_unknown;
      gate.message = fmt::format("it is unknown whether a pod matches --blocking-pod-selector {}: {}", selectors_[i],
                                 pods.error().message());
      gate.look_again = soon(client_.clock(), rng_);
      co_return gate;
    }
    for (const k8s::Pod& pod : *pods) {
      if (pod.finished()) continue;
      seen_[i].insert(pod.uid);
      matching.insert(pod.uid);
      if (first.empty())
        first = fmt::format("pod {} matches --blocking-pod-selector {}: the node waits until the pod has ended",
                            pod.key(), selectors_[i]);
    }
  }
  if (matching.empty()) co_return gate;
  gate.verdict = Gate::Verdict::closed;
  gate.reason = reason::blocked_by_pod;
  gate.message =
      matching.size() == 1 ? first : fmt::format("{} (and {})", first, count_of(matching.size() - 1, "more pod"));
  co_return gate;
}

asio::awaitable<void> BlockingPods::changed() {
  std::vector<asio::awaitable<void>> waits;
  waits.reserve(selectors_.size());
  for (std::size_t i = 0; i < selectors_.size(); ++i) waits.push_back(changed(i));
  co_await first_of(client_.clock(), std::move(waits));
}

asio::awaitable<void> BlockingPods::changed(std::size_t selector) {
  k8s::ReflectorOptions options;
  options.field_selector = on_node(node_);
  options.label_selector = selectors_[selector];
  co_await until_differs<k8s::Pod>(client_, rng_, respite_, options,
                                   [this, selector](const k8s::Reflector<k8s::Pod>& view) {
                                     std::set<std::string> matching;
                                     for (const auto& [uid, pod] : view.objects())
                                       if (!pod.finished()) matching.insert(uid);
                                     return selector >= seen_.size() || matching != seen_[selector];
                                   });
}

namespace {

// Returns the last reboot of a degraded node if the node has been unhealthy since; otherwise nothing.
std::optional<PastReboot> failed_reboot(const k8s::Node& node) {
  const std::optional<Record> record = record_of(node);
  if (!record) return std::nullopt;
  // If `uncordon` is true, the node itself is healthy: its update failed without harm to it, for example because the
  // machine did not reboot.
  if (record->state != State::degraded || record->uncordon || record->reboots.empty()) return std::nullopt;
  PastReboot reboot = record->reboots.back();
  reboot.cleared = false;  // count the reboot as a failure even if that node needs no further reboot
  return reboot;
}

std::string named(const Pending& wanted) {
  return wanted.target.empty() ? "its update (" + printable(joined(wanted.reasons, ", ")) + ")"
                               : "version " + printable(wanted.target);
}

}  // namespace

Gate fleet_gate(const std::vector<k8s::Node>& degraded, const std::string& own, const Pending& wanted,
                std::size_t halt_after) {
  Gate gate{.name = "fleet", .message = "no update of this node has failed on another node of the pool"};
  // A roll-out is that of a version. Nodes with the same reasons may have failed with different updates.
  if (wanted.target.empty()) halt_after = 1;
  const bool is_named = !wanted.target.empty() || !wanted.reasons.empty();
  if (wanted.need != Need::yes || !is_named) return gate;
  std::vector<std::string> names, reasons;
  for (const k8s::Node& node : degraded) {
    const auto failed = node.name == own ? std::nullopt : failed_reboot(node);
    if (!failed || !same_need(*failed, wanted)) continue;
    const auto reason = node.labels.find(std::string(reason_label));
    names.push_back(node.name);
    reasons.push_back(reason == node.labels.end() ? "" : " (" + printable(reason->second) + ")");
  }
  if (names.empty() || names.size() < halt_after) return gate;
  gate.verdict = Gate::Verdict::closed;
  gate.reason = reason::update_failed_elsewhere;
  if (halt_after <= 1) {
    gate.message = fmt::format(
        "node {} has been degraded{} since its reboot for {}, which this node needs, too: repair that node first",
        names.front(), reasons.front(), named(wanted));
    return gate;
  }
  for (std::size_t i = 0; i < names.size(); ++i) names[i] += reasons[i];
  gate.message = fmt::format(
      "nodes {} have been degraded since their reboots for {}, which this node needs, too (halt-after {}): repair them "
      "first",
      some_of(names), named(wanted), halt_after);
  return gate;
}

Gate version_gate(const std::vector<k8s::Node>& nodes, const std::string& own, const Pending& wanted,
                  std::size_t halt_after) {
  Gate gate{.name = "fleet",
            .message = "this version has failed on no other node of the pool",
            .effect = Gate::Effect::gives_up};
  if (wanted.need != Need::yes || wanted.target.empty()) return gate;
  std::vector<std::string> failed;
  for (const k8s::Node& node : nodes) {
    const std::vector<std::string> versions = record_of(node).value_or(Record{}).failed_versions;
    if (std::find(versions.begin(), versions.end(), wanted.target) == versions.end()) continue;
    if (node.name == own) return gate;
    failed.push_back(node.name);
  }
  if (failed.empty() || failed.size() < halt_after) return gate;
  gate.verdict = Gate::Verdict::closed;
  gate.reason = reason::version_failed;
  // How many nodes must count no more, so that fewer than `halt_after` have failed.
  const std::size_t too_many = failed.size() - std::max<std::size_t>(1, halt_after) + 1;
  gate.message = fmt::format(
      "version {0} has failed on node{1} {2}{3}, so this node waits for another version, or until {0} runs well there; "
      "to try {0} all the same, remove the {4}: kubectl annotate node {5} {6}-",
      printable(wanted.target), failed.size() == 1 ? "" : "s", some_of(failed),
      halt_after > 1 ? fmt::format(" (halt-after {})", halt_after) : "",
      too_many == 1 ? "record of node " + failed.front() : fmt::format("records of {} of these nodes", too_many),
      too_many == 1 ? failed.front() : "NAME", record_annotation);
  return gate;
}

namespace {

// Returns what FleetHealth compares to notice a change of a node: its UID and the versions that have failed on it.
std::string seen_of(const k8s::Node& node) {
  return node.uid + " " + joined(record_of(node).value_or(Record{}).failed_versions, " ");
}

}  // namespace

void FleetHealth::belong_to(OwnPool pool) {
  pool_ = std::move(pool);
  selector_ = labels_ + (pool_.node_selector.empty() ? "" : ",") + pool_.node_selector;
}

Task<std::vector<k8s::Node>> FleetHealth::list(TimePoint deadline) {
  CO_TRY(auto nodes, co_await respite_.ask([&] { return client_.list_nodes(selector_, deadline); }));
  was_readable_ = true;
  co_return std::move(nodes.items);
}

asio::awaitable<Gate> FleetHealth::judge(Pending wanted, std::size_t halt_after, TimePoint deadline) {
  auto nodes = co_await list(deadline);
  if (nodes) {
    seen_.clear();
    for (const k8s::Node& node : *nodes) seen_.insert(seen_of(node));
    std::erase_if(*nodes, [this](const k8s::Node& node) { return membership_of(node, pool_) == Membership::stranger; });
    co_return rule_(*nodes, node_, wanted, halt_after);
  }
  Gate gate{.name = "fleet"};
  if (k8s::is_forbidden(nodes.error()) && !was_readable_) {
    gate.verdict = Gate::Verdict::off;
    gate.message =
        "this credential may not list Nodes, so the agent does not notice updates that failed on other nodes";
    co_return gate;
  }
  gate.verdict = Gate::Verdict::closed;
  gate.reason = reason::fleet_unknown;
  gate.message = "the state of the other nodes of the pool is unknown: " + nodes.error().message();
  gate.look_again = soon(client_.clock(), rng_);
  co_return gate;
}

asio::awaitable<void> FleetHealth::changed() {
  k8s::ReflectorOptions options;
  options.label_selector = selector_;
  co_await until_differs<k8s::Node>(client_, rng_, respite_, options, [this](const k8s::Reflector<k8s::Node>& view) {
    std::set<std::string> now;
    for (const auto& [uid, node] : view.objects()) now.insert(seen_of(node));
    return now != seen_;
  });
}

namespace {

using Verdict = Gate::Verdict;
using When = GateQuestion::When;

Gate node_pause(const k8s::Node& node, WallTime now) {
  const auto value = k8s::value_at(node.annotations, pause_annotation);
  return pause_gate("pause-node", "this node", value ? std::optional(parse_pause_annotation(*value)) : std::nullopt,
                    now);
}

// Returns true if a closed gate ends the update that is under way, whatever the other gates say.
bool given_up(const std::vector<Gate>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const Gate& row) { return row.closed() && row.effect == Gate::Effect::gives_up; });
}

bool any_closed(const std::vector<Gate>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const Gate& gate) { return gate.closed(); });
}

// Returns true if this node needs the version again that has failed on it. If nodes that have failed held each other
// back, nothing could end a halt with more failures than the number.
bool tries_again(const Record& record, const Pending& wanted) {
  return wanted.need == Need::yes && !wanted.target.empty() && record.failed_to == wanted.target;
}

bool any_timed(const std::vector<Gate>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const Gate& gate) { return gate.look_again.has_value(); });
}

// If the API server's clock and this machine's differ by more than this, the agent asks the server for its time again.
constexpr auto clocks_differ = std::chrono::minutes(1);

Gate not_asked(std::string name) {
  return {
      .name = std::move(name), .verdict = Verdict::not_asked, .message = "not evaluated while another gate is closed"};
}

asio::awaitable<void> note(Clock& clock, Notifier& notifier, bool& noted) {
  co_await notifier.wait_until(clock, TimePoint::max());
  noted = true;
}

}  // namespace

NodeGates::NodeGates(k8s::Client& client, Rng& rng, http::Transport* prometheus, NodeGatesOptions options)
    : client_(client),
      clock_(client.clock()),
      options_(std::move(options)),
      pauses_(client, rng, options_.ns),
      pods_(client, rng, options_.node, options_.blocking_pod_selectors),
      alerts_(prometheus ? std::make_unique<PrometheusAlerts>(*prometheus, clock_, rng, options_.alerts) : nullptr),
      fleet_(client, rng, options_.node, fmt::format("{}={}", state_label, to_string(State::degraded)), fleet_gate),
      versions_(client, rng, options_.node, std::string(failed_version_label), version_gate) {}

void NodeGates::belong_to(OwnPool pool) {
  if (pool == pool_) return;
  pauses_.belong_to(pool.name);
  fleet_.belong_to(pool);
  versions_.belong_to(pool);
  pool_ = std::move(pool);
  if (rescoped_) rescoped_->notify();
}

std::vector<Gate> NodeGates::timed_gates(const GateQuestion& question, WallTime now) const {
  std::vector<Gate> rows;
  if (question.when != When::under_way)
    rows.push_back(window_gate(options_.schedule, question.record.durations, question.when == When::with_turn, now));
  rows.push_back(node_pause(question.node, now));
  return rows;
}

asio::awaitable<GateAnswer> NodeGates::ask(GateQuestion question, TimePoint deadline) {
  belong_to(options_.own_pool(question.node));
  const bool under_way = question.when == When::under_way;
  std::vector<Gate> rows = timed_gates(question, client_.server_now());
  // If the clocks differ, either may have been corrected since the server's last response. Read the Node to get the
  // server's time again.
  const bool differ = std::chrono::abs(client_.server_now() - clock_.wall_now()) > clocks_differ;
  if (differ && any_timed(rows)) {
    static_cast<void>(co_await client_.get_node(options_.node, deadline));
    rows = timed_gates(question, client_.server_now());
  }
  for (Gate& row : rows) row.look_again = by_own_clock(client_, row.look_again);
  rows.push_back(cordon_gate(question.node, question.record, options_.cordoned_nodes));
  // The reboot limit uses this machine's clock, because the times of earlier reboots in the record are by that clock.
  if (!under_way)
    rows.push_back(brake_gate(question.record.reboots, question.pending, question.requested, clock_.wall_now(),
                              options_.reboots_per_day));
  if (!options_.pin.empty()) rows.push_back(pin_gate(options_.pin, question.pending));
  const bool all = question.when == When::any_time;
  Scope scope{.pauses = all || !any_closed(rows)};
  if (scope.pauses) {
    for (Gate& row : co_await pauses_.judge(under_way, deadline)) rows.push_back(std::move(row));
  } else if (!under_way) {
    rows.push_back(not_asked("pause-pool"));
    rows.push_back(not_asked("pause-cluster"));
  }
  if (!under_way) {
    co_await ask_others(question, deadline, rows, scope);
    last_ = closed_first(rows);
  } else if (by_version(question) && !given_up(rows)) {
    rows.push_back(co_await versions_.judge(question.pending, halt_after(question), deadline));
    scope.versions = rows.back().verdict != Verdict::off;
  }
  if (scope != scope_ && rescoped_) rescoped_->notify();
  scope_ = scope;
  co_return GateAnswer{closed_first(rows)};
}

asio::awaitable<void> NodeGates::ask_others(const GateQuestion& question, TimePoint deadline, std::vector<Gate>& rows,
                                            Scope& scope) {
  const bool all = question.when == When::any_time;
  const auto wanted = [&] { return all || !any_closed(rows); };
  rows.push_back(wanted() ? co_await pods_.judge(deadline) : not_asked("blocking-pods"));
  scope.pods = rows.back().closed();
  if (!alerts_) {
    rows.push_back({.name = "prometheus", .verdict = Verdict::off, .message = "--prometheus-url is not set"});
  } else {
    const bool anew = question.when != When::before_turn;
    rows.push_back(wanted() ? co_await alerts_->judge(options_.node, anew, deadline) : not_asked("prometheus"));
  }
  if (by_version(question) && wanted()) {
    Gate row = co_await versions_.judge(question.pending, halt_after(question), deadline);
    scope.versions = row.closed();
    if (row.closed()) co_return rows.push_back(std::move(row));
  }
  if (tries_again(question.record, question.pending)) {
    rows.push_back({.name = "fleet", .message = "this version has failed on this node, too, so it may try it again"});
    co_return;
  }
  rows.push_back(wanted() ? co_await fleet_.judge(question.pending, halt_after(question), deadline)
                          : not_asked("fleet"));
  scope.fleet = rows.back().closed();
}

std::size_t NodeGates::halt_after(const GateQuestion& question) const {
  return question.versions_are_shared ? options_.halt_after : 1;
}

bool NodeGates::by_version(const GateQuestion& question) const {
  return options_.installs && question.pending.need == Need::yes && !question.pending.target.empty();
}

asio::awaitable<void> NodeGates::changed() {
  Notifier rescoped(co_await asio::this_coro::executor);
  rescoped_ = &rescoped;
  const ScopeExit forget([this] { rescoped_ = nullptr; });
  for (bool again = true; again;) {
    again = false;
    std::vector<asio::awaitable<void>> waits;
    waits.push_back(note(clock_, rescoped, again));
    if (scope_.pauses) waits.push_back(pauses_.changed());
    if (scope_.pods) waits.push_back(pods_.changed());
    if (scope_.fleet) waits.push_back(fleet_.changed());
    if (scope_.versions) waits.push_back(versions_.changed());
    co_await first_of(clock_, std::move(waits));
  }
}

}  // namespace haulout::agent
