#include "agent/lifecycle/node_record.hpp"

#include <fmt/format.h>

#include "agent/lifecycle/context.hpp"
#include "agent/node/readiness.hpp"
#include "drain/cordon.hpp"
#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Backoff after a conflict. Conflicts are common: other clients write the Node, too.
constexpr BackoffOptions conflict_patience{std::chrono::milliseconds(100), 2.0, std::chrono::seconds(5),
                                           BackoffOptions::Jitter::equal};
// Backoff for labels and annotations that another client removes, perhaps each time that the agent restores them. It
// keeps the agent from writing all the time.
constexpr BackoffOptions patience_with_others{std::chrono::seconds(10), 2.0, std::chrono::minutes(10),
                                              BackoffOptions::Jitter::equal};
// The backoff `patience_with_others` starts again if nothing had to be restored for this time.
constexpr Duration forgotten_after = std::chrono::minutes(30);
// Number of conflicts in a row after which the agent reports them; so many take about ten seconds.
constexpr unsigned worth_a_word = 8;

// Backoff after a foreign record: one on the Node that this agent has not written (ForeignRecords). The first pause is
// short, so that the agent writes its record soon after a person removed it.
constexpr BackoffOptions rival_patience{std::chrono::seconds(1), 2.0, std::chrono::minutes(1),
                                        BackoffOptions::Jitter::equal};
// The count and the backoff of foreign records start again after this time without one.
constexpr Duration no_rival_for = std::chrono::minutes(5);
// This many foreign records in a row prove that another agent is running. Late writes of a previous process, or a
// person, cause fewer.
constexpr unsigned surely_a_rival = 3;

}  // namespace

ForeignRecords::ForeignRecords(Clock& clock, Rng& rng, std::string node, std::function<void(std::string)> warn)
    : clock_(clock), rng_(rng), node_(std::move(node)), warn_(std::move(warn)), backoff_(rival_patience) {}

asio::awaitable<void> ForeignRecords::give_way() {
  if (!seen_) co_return;
  if (clock_.now() - gave_way_ > no_rival_for) {
    backoff_.reset();
    in_a_row_ = 0;
  }
  if (++in_a_row_ == surely_a_rival)
    warn_("another agent writes the record of node " + node_ +
          ", too, and the two overwrite each other's record: stop one of the agents");
  co_await clock_.sleep_until(clock_.now() + backoff_.next(rng_));
  gave_way_ = clock_.now();
  seen_ = false;
}

NodeWriter::NodeWriter(asio::any_io_executor executor, const AgentParts& parts, const AgentOptions& options,
                       Record& record, Activity& activity, NodeView& view, const RebootNeed& need,
                       ForeignRecords& foreign)
    : parts_(parts),
      options_(options),
      client_(parts.client),
      record_(record),
      activity_(activity),
      view_(view),
      need_(need),
      foreign_(foreign),
      conditions_(std::move(executor), parts, activity, view, need) {}

void NodeWriter::take_over() {
  const k8s::Node& node = view_.node();
  written_ = sent_ = shown_record(node);
  record_ = written_.empty() ? Record{} : decode_record(written_);
  unreadable_ = record_.cause == reason::record_unreadable ? written_ : "";
  if (written_.empty()) {
    record_.since = client_.clock().wall_now();
    record_.boot_id = view_.boot_id();
    // The Node has no record; a person may have removed it. The mark on the Node names the run, so that the agent can
    // still uncordon the node.
    const auto mark = drain::mark_of(node);
    if (mark && mark->by == cordoned_by) record_.run = mark->run;
    // Perhaps the Node was deleted and registered again in the middle of a drain, and has lost its record. So the agent
    // gives back the pods of that drain and withdraws its requests, unless somebody else drains the node now.
    const bool free = !mark || mark->by == cordoned_by;
    record_.surges = free && options_.drain.guards.surge != drain::Surge::off;
    record_.asks = free && options_.drain.eviction_requests != drain::EvictionRequests::off;
  }
  // An earlier agent has begun this attempt, and noted no readiness taints. Before the boot, those of now are from
  // before the update. After it, nothing shows which of them are.
  const bool before_boot = record_.state == State::draining || record_.state == State::updating ||
                           record_.state == State::ready || record_.state == State::rebooting;
  if (before_boot && !record_.unverified && !record_.old_taints && record_.boot_id == view_.boot_id())
    record_.old_taints = readiness_taints(node);
  record_.authority = options_.authority;
  record_.pool = options_.pool(node);
  status_ = shown_status(node, record_);
  unwritten_ = false;
  conditions_.take_over(record_, status_);
  parts_.recorded(node, record_);
}

bool NodeWriter::has_foreign_record() const {
  const std::string there = shown_record(view_.node());
  return there != written_ && there != sent_ && there != encoded();
}

asio::awaitable<void> NodeWriter::show(std::string reason, std::string message) {
  const Status status{record_.state, std::move(reason), std::move(message), record_.since, record_.judged};
  record_.pool = options_.pool(view_.node());
  if (status == status_ && written_ == encoded()) co_return parts_.recorded(view_.node(), record_);
  const bool news = status != status_;
  status_ = status;
  if (!co_await write()) co_return;
  if (news) parts_.tell(status_);
  co_await conditions_.establish();
}

asio::awaitable<void> NodeWriter::show_transition(Status status, std::string served) {
  status_ = std::move(status);
  if (co_await write(std::move(served))) parts_.tell(status_);
}

asio::awaitable<bool> NodeWriter::write(std::string served) {
  Clock& clock = client_.clock();
  Backoff backoff(patience);
  Backoff after_conflicts(conflict_patience);
  bool failed_before = false;
  unsigned conflicts = 0;
  while (!activity_.must_reload()) {
    if (has_foreign_record()) {
      foreign_.note();
      activity_.reload();
      break;
    }
    const auto patch = status_patch(view_.node(), record_, encoded(), status_, need_.pending().need, served);
    if (!patch) {
      written_ = encoded();
      conditions_.shows(record_, status_);
      parts_.recorded(view_.node(), record_);
      tell_written();
      co_return true;
    }
    sent_ = encoded();
    std::uint64_t news = view_.news();
    auto node = co_await client_.patch_node(options_.node, *patch, k8s::DryRun::none, within(request_timeout));
    const bool conflict = !node && k8s::is_conflict(node.error());
    if (conflict) {
      if (++conflicts == worth_a_word) tell_unwritten(node.error());
      news = view_.news();
      node = co_await client_.get_node(options_.node, within(request_timeout));
    }
    if (node) {
      if (node->uid != view_.node().uid) activity_.reload();
      view_.learn(std::move(*node), news);
      if (conflict) {
        co_await clock.sleep_until(clock.now() + after_conflicts.next(parts_.rng));
        continue;
      }
      written_ = sent_;
      conditions_.shows(record_, status_);
      if (activity_.must_reload()) co_return false;
      parts_.recorded(view_.node(), record_);
      tell_written();
      co_return true;
    }
    if (k8s::is_gone(node.error())) {
      activity_.reload();
      break;
    }
    // A single failure right after a reconnect is not worth a report, so the agent reports failures from the second one
    // on.
    if (std::exchange(failed_before, true)) tell_unwritten(node.error());
    co_await clock.sleep_until(clock.now() + backoff.next(parts_.rng, node.error().retry_after));
  }
  co_return false;
}

// Reports the state that the Node still shows, because a new state counts only after it was written.
void NodeWriter::tell_unwritten(const Error& error) {
  unwritten_ = true;
  Status status = shown_status(view_.node(), record_of(view_.node()).value_or(Record{}));
  status.reason = k8s::is_transient(error) ? reason::api_unavailable : reason::node_not_written;
  status.message = fmt::format("the agent cannot write to Node {}, which therefore stays in state {}: {}",
                               options_.node, to_string(status.state), error.message());
  parts_.tell(status);
}

void NodeWriter::tell_written() {
  if (std::exchange(unwritten_, false)) parts_.tell(status_);
}

// Returns the patch that restores what another client has changed. Returns nothing while the agent itself is writing,
// because then the Node has an older record than the agent's.
std::optional<std::string> NodeWriter::what_was_taken() const {
  if (activity_.must_reload() || !need_.answered() || written_.empty() || written_ != encoded() ||
      shown_record(view_.node()) != written_)
    return std::nullopt;
  return status_patch(view_.node(), record_, encoded(), status_, need_.pending().need);
}

asio::awaitable<void> NodeWriter::keep_shown() {
  Clock& clock = client_.clock();
  Backoff backoff(patience_with_others);
  TimePoint last{};
  std::optional<std::chrono::milliseconds> retry_after;
  for (;;) {
    co_await view_.changed();
    while (what_was_taken()) {
      if (clock.now() - last > forgotten_after) backoff.reset();
      co_await clock.sleep_until(clock.now() + backoff.next(parts_.rng, std::exchange(retry_after, {})));
      last = clock.now();
      const auto patch = what_was_taken();
      if (!patch) break;
      const std::uint64_t news = view_.news();
      auto node = co_await client_.patch_node(options_.node, *patch, k8s::DryRun::none, within(request_timeout));
      if (!node)
        retry_after = node.error().retry_after;
      else if (node->uid == view_.node().uid)
        view_.learn(*std::move(node), news);
    }
  }
}

void NodeWriter::warn(std::string reason, std::string message) const {
  if (parts_.warn) parts_.warn({record_.state, std::move(reason), std::move(message), record_.since});
}

void NodeWriter::show_ready(bool ready) const {
  if (auto shown = parts_.host.show_ready(ready); !shown) warn(reason::ready_file_failed, shown.error().message());
}

asio::awaitable<void> Loading::run() {
  NodeView& view = context_.view;
  context_.writer.conditions().withdraw_proof();
  context_.activity.reloading();
  context_.writer.show_ready(false);
  Backoff backoff(patience);
  for (;;) {
    auto node = co_await context_.client.get_node(context_.options.node, context_.within(request_timeout));
    auto id = context_.parts.host.boot_id();
    if (node && !id) node = id.error();
    if (node) {
      view.set_boot_id(*std::move(id));
      view.learn(std::move(*node), view.news());
      context_.parts.node_is(view.node().uid);
      break;
    }
    tell_unread(node.error());
    co_await context_.pause(backoff.next(context_.rng, node.error().retry_after));
  }
  if (!requested_at_start_) requested_at_start_ = served_request(view.node(), false, context_.client.server_now());
  context_.writer.take_over();
  context_.parts.slots.remember(context_.record.slot);
  context_.parts.tell(context_.writer.status());
}

void Loading::tell_unread(const Error& error) {
  const Record& record = context_.record;
  const std::string& name = context_.options.node;
  Status status{record.state, reason::api_unavailable,
                "the agent cannot read node " + name + " or the boot id of its machine: " + error.message(),
                record.since, record.judged};
  if (k8s::is_gone(error)) {
    status.reason = reason::node_missing;
    status.message = "the cluster has no Node " + name +
                     ": it was deleted, or its kubelet has not registered it; the agent continues when it exists";
  }
  context_.parts.tell(status);
}

// A reboot request that arrives after the boot but before the agent starts cannot be distinguished from an earlier one,
// so it counts as served.
asio::awaitable<void> Loading::note_boot() {
  Record& record = context_.record;
  if (!context_.rebooted() || next_state(record.state, Event::boot_changed)) co_return;
  const bool told = !record.boot_id.empty();
  record.boot_id = context_.view.boot_id();
  co_await context_.writer.write(told ? *requested_at_start_ : std::string());
}

}  // namespace haulout::agent
