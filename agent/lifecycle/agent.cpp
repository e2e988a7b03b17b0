#include "agent/lifecycle/agent.hpp"

#include <fmt/format.h>

#include "agent/lifecycle/draining.hpp"
#include "agent/lifecycle/node_record.hpp"
#include "agent/lifecycle/rebooting.hpp"
#include "agent/lifecycle/side_write.hpp"
#include "agent/lifecycle/updating.hpp"
#include "agent/lifecycle/waiting_states.hpp"
#include "agent/node/node_cordon.hpp"
#include "base/scope_exit.hpp"
#include "drain/cordon.hpp"
#include "drain/eviction_request_feed.hpp"
#include "drain/reasons.hpp"
#include "drain/surge_feed.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// The id of the next run. A cordon that was kept since the last run (see lacks_since_last_boot()) is the cordon of the
// next one, too: its mark names the run that takes it back.
std::string next_run(const Context& context) {
  const auto mark = drain::mark_of(context.node());
  const bool kept = context.node().unschedulable && mark && mark->run == context.record.run;
  return kept && !context.record.run.empty() ? context.record.run : context.new_run();
}

// Waits until the kubelet has reported the current boot Ready.
asio::awaitable<void> kubelet_is_back(const Context& context) {
  while (!context.activity.must_reload() && !context.view.kubelet_reports_this_boot()) {
    co_await context.writer.show(reason::node_not_ready, "the kubelet does not report the node Ready for this boot");
    co_await context.activity.wait(context.within(look_interval));
  }
}

asio::awaitable<void> undo_cordon(const Context& context) {
  Backoff backoff(patience);
  while (!context.activity.must_reload()) {
    const std::uint64_t news = context.view.news();
    auto change = co_await drain::take_back(context.client, context.rng, context.options.node, context.record.run,
                                            context.within(request_timeout));
    if (change) {
      if (change->after.uid != context.node().uid) co_return context.activity.reload();
      context.view.learn(change->after, news);
      context.record.run.clear();
      co_return;
    }
    if (k8s::is_gone(change.error())) co_return context.activity.reload();
    co_await context.writer.show(reason::cannot_uncordon,
                                 "the agent cannot uncordon the node yet: " + change.error().message());
    co_await context.pause(backoff.next(context.rng, change.error().retry_after));
  }
}

// How long the agent tries to give pods back before it goes on, and after which time it tries again.
constexpr Duration give_back_limit = std::chrono::minutes(1);
constexpr Duration give_back_interval = std::chrono::minutes(10);

// Gives back the pods that the drain of this run has surged, if the drain has not done that because it was cancelled or
// the agent was killed. A pod that cannot be given back must not hold up the node and the fleet.
asio::awaitable<void> give_back_pods(const Context& context) {
  const auto given = co_await drain::give_back_surged(context.client, context.rng, context.options.node, {true},
                                                      context.within(give_back_limit));
  context.record.surges = !given || given->may_heal;
  if (given && given->left.empty()) co_return;
  context.writer.warn(reason::surge_failed,
                      fmt::format("pods that were to be replaced in advance could not be given back to their "
                                  "ReplicaSets: {}",
                                  given ? drain::words_of(given->left) : given.error().message()));
}

// Withdraws the EvictionRequests that the drain of this run has left open, for the same reasons.
asio::awaitable<void> withdraw_requests(const Context& context) {
  const auto withdrawn = co_await drain::withdraw_requests(context.client, context.rng, context.node().uid,
                                                           {.unanswered = true}, context.within(give_back_limit));
  context.record.asks = !withdrawn || !withdrawn->left.empty();
  if (!context.record.asks) co_return;
  context.writer.warn(reason::eviction_request_failed,
                      fmt::format("EvictionRequests could not be withdrawn: {}",
                                  withdrawn ? drain::words_of(withdrawn->left) : withdrawn.error().message()));
}

// Undoes what the drain of this run has left behind besides its cordon.
asio::awaitable<void> tidy_up(const Context& context) {
  if (context.record.surges) co_await give_back_pods(context);
  if (context.record.asks) co_await withdraw_requests(context);
}

// Establishes the duties of the state (see agent/node/state.hpp): cordon, load balancers, slot, conditions, ready file,
// the annotations for autoscalers, and the taint. A cordon that is in force stays until the boot was verified, and
// while the machine shuts down. Retries each step until it succeeds or until the Node has to be read again; the
// conditions, the annotations and the taint are best effort.
asio::awaitable<void> establish_duties(const Context& context, OwnSlot& slot, Shutdowns& shutdowns,
                                       SideWrites& side_writes) {
  const Record& record = context.record;
  Activity& activity = context.activity;
  const Duties duties = duties_of(record.state);
  // Remove the ready file, even in `ready`: nothing has been proved since the agent entered the state or was started,
  // and the machine may have booted since the last proof.
  context.writer.show_ready(false);
  // If the boot must be verified first, the cordon stays until then.
  const bool verifies = context.rebooted() && next_state(record.state, Event::boot_changed);
  const bool unproved = !lacks_since_last_boot(context).empty();
  const bool uncordon =
      !verifies && !unproved && (duties.cordon == Duty::no || (duties.cordon == Duty::keep && record.uncordon));
  const bool ours = uncordon && !record.run.empty();
  if (ours) co_await shutdowns.until_called_off();
  if (ours && context.rebooted()) co_await kubelet_is_back(context);
  if (record.state != State::draining && !shutdowns.going_down() && !activity.must_reload()) co_await tidy_up(context);
  if (ours && !activity.must_reload()) co_await undo_cordon(context);
  if (uncordon && !activity.must_reload()) co_await return_to_load_balancers(context);
  if (duties.turn == Duty::no && !activity.must_reload()) co_await slot.release();
  if (!activity.must_reload()) co_await context.writer.conditions().establish();
  co_await side_writes.establish();
}

// One run of an agent: owns what its states share, and takes the node from state to state.
class Life {
 public:
  Life(asio::any_io_executor executor, const AgentParts& parts, const AgentOptions& options);
  asio::awaitable<void> run();

 private:
  asio::awaitable<void> live();
  asio::awaitable<void> keep_tidying_up();
  asio::awaitable<void> decide(std::optional<Decision>& decision);
  asio::awaitable<void> keep_going();
  // Does the work of the current state. Returns the decision that ends it; if the Node has to be read again, the
  // decision does not count.
  asio::awaitable<Decision> work();
  asio::awaitable<Decision> drain();
  // Moves the record to the next state, and writes it to the Node.
  asio::awaitable<void> commit(Decision decision);
  NodeView::Callbacks watch_callbacks();
  void see_node(bool same);
  // Warns once of each value of the request annotation that cannot be read.
  void tell_request();
  void withdraw_readiness();

  const AgentParts& parts_;
  const AgentOptions& options_;
  Record record_;
  Activity activity_;
  NodeView view_;
  RebootNeed need_;
  ForeignRecords foreign_records_;
  NodeWriter writer_;
  const Context context_;
  GateWatch gates_;
  OwnSlot slot_;
  SideWrites side_writes_;
  Hooks hooks_;
  RemainingPods pods_;
  Proof proof_;
  DrainStatus drain_status_;
  const Draining* draining_ = nullptr;  // set only in the state `draining`
  Loading loading_;
  Shutdowns shutdowns_;
  std::string told_request_;  // the last warning about a request that cannot be read; empty: there was none
};

Life::Life(asio::any_io_executor executor, const AgentParts& parts, const AgentOptions& options)
    : parts_(parts),
      options_(options),
      activity_(executor, parts.client.clock(), [this] { withdraw_readiness(); }),
      view_(executor, parts.client, parts.rng, options.node, watch_callbacks()),
      need_(executor, parts.backend, parts.updater, activity_, view_, record_, parts.client, parts.rng),
      foreign_records_(parts.client.clock(), parts.rng, options.node,
                       [this](std::string message) { writer_.warn(reason::second_agent, std::move(message)); }),
      writer_(executor, parts, options, record_, activity_, view_, need_, foreign_records_),
      context_{parts, options, parts.client, parts.client.clock(), parts.rng, record_, activity_, view_, writer_},
      gates_(executor, context_, need_),
      slot_(context_),
      side_writes_(executor, context_),
      hooks_(context_),
      pods_(context_),
      proof_(context_, gates_, pods_),
      drain_status_(parts.drain_observer, [this] { activity_.wake(); }),
      loading_(context_),
      shutdowns_(executor, context_, loading_, [this] {
        if (record_.state == State::updating)
          return std::string(record_.installing
                                 ? "updates are being installed"
                                 : "the node is drained, but the installation of its updates has not begun");
        return drain_status_.message(draining_ ? draining_->findings() : Findings());
      }) {}

asio::awaitable<void> Life::run() {
  co_await loading_.run();
  co_await with_task_group([this](TaskGroup& group) {
    group.spawn(view_.follow());
    group.spawn(need_.follow());
    group.spawn(need_.follow_request());
    if (parts_.updater) group.spawn(need_.follow_updates());
    group.spawn(writer_.conditions().keep());
    group.spawn(writer_.keep_shown());
    group.spawn(side_writes_.keep());
    if (parts_.shutdown) group.spawn(shutdowns_.follow());
    return live();
  });
}

// When the node has to be drained for a shutdown that another program requested, the work of the current state is
// cancelled, as by a crash. The record on the Node has everything that is needed to continue after it.
asio::awaitable<void> Life::live() {
  for (;;) {
    co_await with_task_group([this](TaskGroup& group) {
      group.spawn(keep_going());
      return shutdowns_.until_drain_is_due();
    });
    co_await shutdowns_.drain_node();
  }
}

// Tries again to tidy up if that has failed. Runs beside the work of one state.
asio::awaitable<void> Life::keep_tidying_up() {
  for (;;) {
    co_await context_.clock.sleep_until(context_.clock.now() + give_back_interval);
    if (!shutdowns_.going_down()) co_await tidy_up(context_);
  }
}

asio::awaitable<void> Life::keep_going() {
  for (;;) {
    if (foreign_records_.seen()) {
      writer_.show_ready(false);
      co_await foreign_records_.give_way();
    }
    if (activity_.must_reload()) co_await loading_.run();
    shutdowns_.delay();
    co_await establish_duties(context_, slot_, shutdowns_, side_writes_);
    if (!activity_.must_reload()) co_await loading_.note_boot();
    if (activity_.must_reload()) continue;
    std::optional<Decision> decision;
    co_await with_task_group([this, &decision](TaskGroup& group) {
      // A drain looks after the marked pods and its requests itself.
      if (record_.state != State::draining) group.spawn(keep_tidying_up());
      return decide(decision);
    });
    if (!activity_.must_reload()) co_await commit(*std::move(decision));
  }
}

asio::awaitable<void> Life::decide(std::optional<Decision>& decision) {
  // Only the work of a state watches the pods. The write of the next state may take hours.
  const ScopeExit over([this] { writer_.conditions().withdraw_proof(); });
  decision = co_await work();
}

asio::awaitable<Decision> Life::work() {
  activity_.begin();
  switch (record_.state) {
    case State::unknown: co_return co_await wait_for_answer(context_, need_);
    case State::idle: co_return co_await wait_for_need(context_, need_);
    case State::pending: co_return co_await wait_for_gates(context_, need_, gates_);
    case State::waiting: {
      SlotQueue queue(context_, need_, gates_, slot_);
      co_return co_await queue.run();
    }
    case State::draining: co_return co_await drain();
    case State::updating: {
      Updating updating(context_, need_, proof_);
      co_return co_await updating.run();
    }
    case State::ready: {
      Ready ready(context_, need_, gates_, slot_, pods_, proof_);
      co_return co_await ready.run();
    }
    case State::rebooting: {
      Rebooting rebooting(context_, need_, pods_, proof_, shutdowns_);
      co_return co_await rebooting.run();
    }
    case State::verifying: co_return co_await verify(context_, need_, hooks_);
    // establish_duties() has uncordoned the node already; this state has no other work.
    case State::uncordoning: co_return Decision{context_.rebooted() ? Event::boot_changed : Event::uncordoned};
    case State::soaking: co_return co_await soak(context_, hooks_);
    case State::degraded: co_return co_await stay_degraded(context_, need_, gates_, hooks_);
  }
  std::terminate();
}

asio::awaitable<Decision> Life::drain() {
  Draining draining(context_, gates_, slot_, hooks_, pods_, drain_status_);
  draining_ = &draining;
  const ScopeExit over([this] { draining_ = nullptr; });
  co_return co_await draining.run();
}

asio::awaitable<void> Life::commit(Decision decision) {
  // The record remembers versions that fail, and forgets one that runs well. It also names the version that the last
  // update led to. So the version has to be known.
  const bool well = decision.event == Event::verified || decision.event == Event::healed;
  const bool matters = !record_.failed_versions.empty() || !record_.failed_to.empty() || !record_.updated_to.empty() ||
                       !record_.slot_version.empty();
  const bool ends_failure = decision.event == Event::not_needed && !record_.failed_to.empty();
  const bool asks = (well && matters) || ends_failure;
  const bool known = !asks || (co_await need_.learn_version(context_.within(request_timeout))).has_value();
  if (parts_.updater && decision.event == Event::update_given_up) co_await need_.first_answer();
  Moment moment;
  moment.now = context_.wall();
  moment.boot_id = view_.boot_id();
  moment.pending = need_.pending();
  moment.updates = need_.updates();
  moment.requested = need_.requested();
  // If the version cannot be read now, it is the one that the verification has compared with `to`.
  if (known || (well && !record_.to.empty())) moment.booted = need_.version();
  moment.slot = slot_.taken();
  moment.slot_version = slot_.version();
  moment.readiness_taints = readiness_taints(view_.node());
  moment.run = next_run(context_);
  moment.surges = options_.drain.guards.surge != drain::Surge::off;
  moment.asks = options_.drain.eviction_requests != drain::EvictionRequests::off;
  moment.installs = parts_.updater && parts_.updater->versions_are_shared();
  moment.others_reboot = parts_.host.reboot_methods().empty();
  moment.cause = std::move(decision.cause);
  moment.cause_message = std::move(decision.message);
  if (decision.event == Event::turn_taken) pods_.begin_attempt();
  const bool was_requested = record_.requested;
  record_ = advance(std::move(record_), decision.event, moment, options_.times);
  Status status{record_.state, record_.cause, record_.cause_message, record_.since, record_.judged};
  if (decision.event == Event::reboot_not_needed)
    status.message = "the updates are installed and need no reboot; verifying that the node is Ready";
  if (decision.event == Event::needed && need_.updates().need == Need::yes)
    status.message = words_of(need_.updates()) + (need_.reboot_wanted() ? "; a reboot is needed, too" : "");
  if (record_.state == State::pending && status.reason.empty() && options_.spread > Duration::zero()) {
    status.reason = reason::randomized_delay;
    status.message += fmt::format("{}the agent begins within {}, at a random time, because the cluster has many nodes",
                                  status.message.empty() ? "" : "; ", format_duration(options_.spread));
  }
  if (const auto cordon = persons_cordon(view_.node()); cordon && record_.state == State::uncordoning)
    status.message = "verification passed; the node stays " + words_of(*cordon);
  // Remove the ready file before the write, because the API server may accept the write only much later.
  if (!duties_of(record_.state).shows_ready) writer_.show_ready(false);
  // A failed reboot ends the request, too, so that it does not cause one attempt after another.
  const bool ends = decision.event == Event::boot_changed || decision.event == Event::reboot_impossible ||
                    decision.event == Event::boot_unknown;
  std::string served = ends ? served_request(view_.node(), was_requested, context_.client.server_now()) : std::string();
  shutdowns_.state_changed();
  co_await writer_.show_transition(std::move(status), std::move(served));
  writer_.conditions().changed();
}

NodeView::Callbacks Life::watch_callbacks() {
  return {.schedulable =
              [this] {
                pods_.node_is_schedulable();
                writer_.conditions().withdraw_proof();
              },
          .seen = [this](bool same) { see_node(same); },
          .deleted = [this] { activity_.interrupt_to_reload(); },
          .watch_reported = [this] { activity_.wake(); }};
}

void Life::see_node(bool same) {
  if (!same) {
    activity_.interrupt_to_reload();
  } else {
    if (writer_.has_foreign_record()) {
      foreign_records_.note();
      activity_.interrupt_to_reload();
    }
    // A node that became schedulable ends the state, but does not require that the Node is read again.
    if (duties_of(record_.state).shows_ready && !view_.node().unschedulable) activity_.interrupt(cordon_lost());
  }
  if (same) tell_request();
  gates_.node_changed();
  side_writes_.node_changed();
  need_.node_changed();
  writer_.conditions().changed();
  activity_.wake();
}

void Life::tell_request() {
  const auto unreadable = unreadable_request(view_.node());
  if (unreadable && *unreadable != told_request_) writer_.warn(reason::request_unreadable, *unreadable);
  told_request_ = unreadable.value_or("");
}

void Life::withdraw_readiness() {
  writer_.show_ready(false);
  writer_.conditions().withdraw_proof();
}

}  // namespace

class Agent::Impl {
 public:
  Impl(AgentParts parts, AgentOptions options) : parts_(std::move(parts)), options_(std::move(options)) {}

  asio::awaitable<void> run() {
    Life life(co_await asio::this_coro::executor, parts_, options_);
    co_await life.run();
  }

 private:
  const AgentParts parts_;
  const AgentOptions options_;
};

Agent::Agent(AgentParts parts, AgentOptions options)
    : impl_(std::make_unique<Impl>(std::move(parts), std::move(options))) {}
Agent::~Agent() = default;
asio::awaitable<void> Agent::run() {
  return impl_->run();
}

}  // namespace haulout::agent
