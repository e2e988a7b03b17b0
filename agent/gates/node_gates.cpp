#include "agent/gates/node_gates.hpp"

#include "agent/gates/cordon_gate.hpp"
#include "agent/gates/gate.hpp"
#include "agent/gates/waiting.hpp"
#include "base/scope_exit.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

using Verdict = Gate::Verdict;
using When = GateQuestion::When;

Gate node_pause(const k8s::Node& node, WallTime now) {
  const auto value = k8s::value_at(node.annotations, pause_annotation);
  return pause_gate("pause-node", "this node", value ? std::optional(parse_pause_annotation(*value)) : std::nullopt,
                    now);
}

bool any_closed(const std::vector<Gate>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const Gate& gate) { return gate.closed(); });
}

bool any_timed(const std::vector<Gate>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const Gate& gate) { return gate.look_again.has_value(); });
}

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
      fleet_(client, rng, options_.node) {}

void NodeGates::belong_to(OwnPool pool) {
  if (pool == pool_) return;
  pauses_.belong_to(pool.name);
  fleet_.belong_to(pool);
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
  // If the clocks differ, either may have been corrected since the server's last response. So ask the server again.
  const bool differ = std::chrono::abs(client_.server_now() - clock_.wall_now()) > clocks_differ;
  if (differ && any_timed(rows)) {
    static_cast<void>(co_await client_.get_node(options_.node, deadline));
    rows = timed_gates(question, client_.server_now());
  }
  for (Gate& row : rows) row.look_again = by_own_clock(client_, row.look_again);
  rows.push_back(cordon_gate(question.node, question.record, options_.cordoned_nodes));
  // The record holds the times of earlier reboots by the node's own clock.
  if (!under_way)
    rows.push_back(brake_gate(question.record.reboots, question.pending, question.requested, clock_.wall_now(),
                              options_.reboots_per_day));
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
  rows.push_back(wanted() ? co_await fleet_.judge(question.pending, deadline) : not_asked("fleet"));
  scope.fleet = rows.back().closed();
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
    co_await first_of(clock_, std::move(waits));
  }
}

}  // namespace haulout::agent
