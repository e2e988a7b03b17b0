#include "agent/lifecycle/waiting_states.hpp"

#include <fmt/chrono.h>

#include "agent/lifecycle/node_record.hpp"
#include "agent/lifecycle/updating.hpp"
#include "agent/node/record.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

using When = GateQuestion::When;

// A node that waits for a slot evaluates its gates again after one to two of these intervals, so that it notices the
// end of a maintenance window.
constexpr Duration line_look = std::chrono::minutes(5);
// The longest wait for a time of day. The wall clock may be set forward, so the agent reads it again after this
// interval.
constexpr Duration clock_look = std::chrono::minutes(10);
// Of spread_of(). An agent that begins to wait sends some 20 requests. An API server on two cores answers some 1,000
// requests in a second (docs/numbers.md).
constexpr std::size_t many_nodes = 50;
constexpr Duration spread_each = std::chrono::milliseconds(15);
constexpr Duration most_spread = std::chrono::seconds(30);
// How often a node that is still cordoned because of its last boot looks whether it lacks anything.
constexpr Duration lacks_look = std::chrono::minutes(1);

// The result of writing an image; nothing while the image is being written.
using Written = std::optional<Result<>>;

asio::awaitable<void> write_image(const Context& context, TimePoint deadline, Written& written) {
  written = co_await context.parts.updater->install(deadline);
  context.activity.wake();
}

asio::awaitable<void> until_written(const Context& context, const Written& written) {
  while (!written && !context.activity.must_reload()) co_await context.activity.wait(TimePoint::max());
}

// Writes the image that waits, before the node takes a slot, so that after the drain only the reboot is left. Returns
// nothing if the image was written. Also returns nothing if the Node has to be read again: then the update tool goes on
// writing, and the next call waits for its end. Returns a decision if the image cannot be written. That counts as a
// failed installation, and after too many of them in a row the node becomes degraded, so that a person looks.
asio::awaitable<std::optional<Decision>> stage_image(const Context& context, RebootNeed& need) {
  Written written;
  co_await context.writer.show(reason::applying_update,
                               with_names("writing the image for the next boot", need.updates()));
  co_await with_task_group([&context, &written](TaskGroup& group) {
    group.spawn(write_image(context, context.within(context.options.times.update_limit), written));
    return until_written(context, written);
  });
  if (!written || context.activity.must_reload()) co_return std::nullopt;
  if (!*written)
    co_return failed_update(context.record, context.options.update_attempts, reason::update_failed,
                            written->error().message());
  context.record.failed_updates = 0;
  co_await need.ask_now();
  co_return std::nullopt;
}

std::string backing_off(const Record& record) {
  return fmt::format("{} did not succeed{}: {}; next attempt at {}", count_of(record.failures, "attempt"),
                     record.failures == 1 ? "" : ", the last one", record.cause_message,
                     fmt::format("{:%FT%TZ}", std::chrono::floor<std::chrono::seconds>(*record.not_before)));
}

// The time before which the update does not begin, if one is known: from the gates, or from the agent's own backoff.
std::optional<WallTime> not_before(const GateAnswer& answer, const Record& record, WallTime now) {
  const auto opens = answer.opens();
  const bool backs_off = record.not_before && *record.not_before > now;
  return backs_off && (!opens || *record.not_before > *opens) ? record.not_before : opens;
}

// What the Node lacks after its boot or installation, as a text for people.
std::string lacks_now(const Context& context) {
  return not_shown_yet(context.node(), context.record.old_taints.value_or(std::set<std::string>()),
                       context.options.conditions);
}

// The node waits for its next attempt.
bool is_between_attempts(const Record& record) {
  return record.state == State::pending || record.state == State::waiting ||
         (record.state == State::degraded && record.uncordon);
}

// The node has kept the cordon of its last attempt. When it lacks nothing any more, the cordon ends as soon as the
// agent establishes the duties of the state again.
bool has_kept_cordon(const Record& record) {
  return is_between_attempts(record) && !record.run.empty();
}

bool cordon_is_over(const Context& context) {
  return has_kept_cordon(context.record) && lacks_since_last_boot(context).empty();
}

// Returns after a random time of at most `spread`, or at once if a person requests a reboot or the Node has to be read
// again.
asio::awaitable<void> let_others_ask(const Context& context, const RebootNeed& need) {
  if (context.options.spread == Duration::zero()) co_return;
  const TimePoint until = context.within(context.rng.between(Duration::zero(), context.options.spread));
  while (!context.activity.must_reload() && !need.requested() && context.now() < until)
    co_await context.activity.wait(until);
}

}  // namespace

Duration spread_of(std::size_t cluster_nodes) {
  if (cluster_nodes < many_nodes) return Duration::zero();
  return std::min<Duration>(most_spread, static_cast<std::int64_t>(cluster_nodes) * spread_each);
}

std::string lacks_since_last_boot(const Context& context) {
  return context.record.unverified && is_between_attempts(context.record) ? lacks_now(context) : std::string();
}

asio::awaitable<Decision> wait_for_answer(const Context& context, RebootNeed& need) {
  co_await need.first_answer();
  while (!context.activity.must_reload() && need.pending().need == Need::unknown && !need.requested()) {
    if (!need.pending().problem.empty()) co_await context.writer.show(reason::backend_unknown, need.pending().problem);
    co_await context.activity.wait(TimePoint::max());
  }
  co_return Decision{Event::answered};
}

asio::awaitable<Decision> wait_for_need(const Context& context, RebootNeed& need) {
  NodeWriter& writer = context.writer;
  co_await need.first_answer();
  while (!context.activity.must_reload() && !need.wanted()) {
    note_updates(context.record, need.updates());
    TimePoint until = TimePoint::max();
    const auto foreign = context.view.foreign_boot(until);
    const Pending& pending = need.pending();
    if (foreign && foreign->reason == reason::boot_id_foreign) {
      co_await writer.show(foreign->reason, foreign->message);
    } else if (pending.need == Need::unknown) {
      co_await writer.show(reason::backend_unknown, pending.problem);
    } else if (pending.need == Need::yes || need.updates().need == Need::yes) {
      const std::string& bad = pending.need == Need::yes ? pending.target : need.updates().target;
      const auto unreadable = unreadable_request(context.node());
      co_await writer.show(
          reason::rolled_back,
          "version " + bad +
              " was rolled back on this node, or never booted, so the agent tries it again only if a person requests "
              "that (haulout request-reboot)" +
              (unreadable ? "; " + *unreadable : ""));
    } else {
      note_no_need(context.record);
      const bool known = need.updates().need != Need::unknown;
      const auto unreadable = known ? unreadable_request(context.node()) : std::nullopt;
      co_await writer.show(!known       ? reason::backend_unknown
                           : unreadable ? reason::request_unreadable
                                        : "",
                           unreadable ? *unreadable : need.updates().problem);
    }
    co_await context.activity.wait(until);
  }
  co_return Decision{Event::needed};
}

asio::awaitable<Decision> wait_for_gates(const Context& context, RebootNeed& need, GateWatch& gates) {
  NodeWriter& writer = context.writer;
  Record& record = context.record;
  const LifecycleTimes& times = context.options.times;
  Host& host = context.parts.host;
  co_await need.first_answer();
  // The last look may be an hour old, and a person who requests a reboot may have replaced the offered image since.
  if (need.requested() && context.options.stages_first && context.parts.updater) co_await need.ask_now();
  co_await let_others_ask(context, need);
  while (!context.activity.must_reload()) {
    if (cordon_is_over(context)) {
      context.activity.reload();
      break;
    }
    const std::string lacks = lacks_since_last_boot(context);
    if (need.gone() && lacks.empty()) co_return Decision{Event::not_needed};
    note_updates(record, need.updates());
    TimePoint until = lacks.empty() ? TimePoint::max() : context.within(lacks_look);
    // A clock that was ahead may have set `not_before`. Limit the wait to the longest backoff.
    const WallTime latest = context.wall() + std::chrono::duration_cast<WallTime::duration>(times.backoff_cap);
    if (record.not_before) record.not_before = std::min(*record.not_before, latest);
    const GateWatch::Asked asked = gates.asked_now();
    const GateAnswer answer = co_await gates.ask(When::before_turn);
    if (const Gate* brake = answer.closed_with(Gate::Effect::degrades))
      co_return Decision{Event::brake, brake->reason, brake->message};
    writer.conditions().expect(not_before(answer, record, context.wall()));
    if (const auto foreign = context.view.foreign_boot(until)) {
      co_await writer.show(foreign->reason, foreign->message);
    } else if (need.gone()) {
      co_await writer.show(
          reason::condition_not_met,
          "no reboot is needed, but the last boot is not verified, so the node stays cordoned: " + lacks);
    } else if (!answer.open()) {
      // A window that opens in more than two years has no known time yet.
      const auto again = answer.look_again();
      until = std::min(until, again ? context.at(*again, clock_look) : context.within(std::chrono::hours(24)));
      co_await writer.show(answer.reason(), answer.message());
    } else if (record.not_before && *record.not_before > context.wall()) {
      until = std::min(until, context.at(*record.not_before, times.backoff_cap));
      co_await writer.show(reason::backing_off, backing_off(record));
    } else if (context.options.stages_first && context.parts.updater && need.updates_wanted()) {
      if (auto failed = co_await stage_image(context, need)) co_return *std::move(failed);
      continue;
    } else {
      const Result<> known = co_await need.learn_version(context.within(request_timeout));
      // If another program reboots the machine, the agent does not need the permission to reboot.
      const Result<> can =
          host.reboot_methods().empty() ? Result<>() : co_await host.can_reboot(context.within(request_timeout));
      if (known && can) co_return Decision{Event::gates_open};
      until = context.within(std::chrono::minutes(5));
      co_await writer.show(known ? reason::cannot_reboot : reason::backend_unknown,
                           (known ? can : known).error().message());
    }
    co_await gates.wait(asked, until);
    co_await let_others_ask(context, need);
  }
  co_return Decision{Event::not_needed};
}

asio::awaitable<Decision> SlotQueue::run() {
  co_await need_.first_answer();
  // Ask for the version, because this process may not have it yet. A node that cannot report its version must not take
  // a slot.
  const Result<> known = co_await need_.learn_version(context_.within(request_timeout));
  if (!known) co_return Decision{Event::gate_closed};
  context_.writer.conditions().expect(std::nullopt);
  warn_without_version();
  Backoff backoff(eager_patience);
  while (!context_.activity.must_reload()) {
    if (!worth_a_slot()) co_return Decision{Event::not_needed};
    const GateWatch::Asked asked = gates_.asked_now();
    if (!(co_await gates_.ask(When::before_turn)).open()) co_return Decision{Event::gate_closed};
    if (cordon_is_over(context_)) co_return Decision{Event::gate_closed};
    ask_again_ |= version_changed();
    if (ask_again_) {
      auto decision = co_await ask(backoff, asked);
      if (decision) co_return *std::move(decision);
    }
    if (!ask_again_) co_await wait();
  }
  co_return Decision{Event::not_needed};
}

asio::awaitable<std::optional<Decision>> SlotQueue::ask(Backoff& backoff, GateWatch::Asked asked) {
  version_ = target();
  context_.record.waits_for = version_;
  context_.parts.slots.aim_at(version_);
  auto turn = co_await context_.parts.slots.take(context_.within(std::chrono::minutes(2)));
  if (turn && !turn->ours) {
    backoff.reset();
    ask_again_ = false;
    co_await context_.writer.show(turn->reason, turn->why);
    co_return std::nullopt;
  }
  if (!turn) {
    co_await context_.writer.show(reason::slots_unavailable, turn.error().message());
    co_await context_.pause(backoff.next(context_.rng, turn.error().retry_after));
    // The Node lacks something that only a person can add, for example a label, so ask again only rarely.
    if (turn.error().code() == Errc::invalid)
      co_await gates_.wait(std::move(asked), context_.within(context_.rng.between(line_look, 2 * line_look)));
    co_return std::nullopt;
  }
  slot_.take(turn->slot, version_);
  // Taking the slot took time, so check the need and the gates again.
  if (!worth_a_slot()) co_return Decision{Event::not_needed};
  if (version_changed()) co_return Decision{Event::gate_closed};
  const GateAnswer again = co_await gates_.ask(When::with_turn);
  // The gates may have taken long to answer.
  if (again.open()) co_return Decision{version_changed() ? Event::gate_closed : Event::turn_taken};
  // The server of the slots may have cordoned the node itself: some do when they give it a slot, and uncordon it when
  // it gives the slot back. With the reason the agent waits before its next attempt, see advance().
  const bool cordoned = again.reason() == reason::cordoned_by_person;
  co_return cordoned ? Decision{Event::gate_closed, again.reason(), again.message()} : Decision{Event::gate_closed};
}

// A reboot that a person requests needs no version.
void SlotQueue::warn_without_version() const {
  const bool unnamed = need_.all().need == Need::yes && target().empty();
  if (!context_.options.ramp || !unnamed) return;
  context_.writer.warn(reason::ramp_without_version,
                       "ramp and halt-after have no effect on this update, because the back end names no version for "
                       "it that other nodes "
                       "share: only max-unavailable limits how many nodes are updated at a time");
}

asio::awaitable<void> SlotQueue::wait() {
  co_await with_task_group([this](TaskGroup& group) {
    group.spawn(follow_slots());
    group.spawn(gates_.follow());
    return until_worth_asking(gates_.asked_now(), context_.within(context_.rng.between(line_look, 2 * line_look)));
  });
}

asio::awaitable<void> SlotQueue::until_worth_asking(GateWatch::Asked before, TimePoint until) {
  gates_.forget_change();
  while (!context_.activity.must_reload() && !ask_again_ && !gates_.changed() && worth_a_slot() && !version_changed() &&
         context_.now() < until) {
    co_await context_.activity.wait(until);
    if (gates_.asked_now().words == before.words) continue;
    ask_again_ = true;  // the Node's pool may have changed
    break;
  }
}

asio::awaitable<void> SlotQueue::follow_slots() {
  for (;;) {
    co_await context_.parts.slots.changed();
    ask_again_ = true;
    context_.activity.wake();
    co_await context_.pause(std::chrono::milliseconds(200));  // counts a burst of changes as one
  }
}

namespace {

// What verification finds out about the node after its boot.
struct Condition {
  bool well = false;
  bool hopeless = false;  // waiting until the deadline cannot help
  std::string reason{}, message{};
};

asio::awaitable<Condition> look_at_version(const Context& context, RebootNeed& need) {
  const Record& record = context.record;
  if (record.to.empty()) co_return Condition{.well = true};
  const Result<> known = co_await need.learn_version(context.within(request_timeout));
  if (!known) co_return Condition{.reason = reason::backend_unknown, .message = known.error().message()};
  const std::string& version = need.version();
  if (version == record.to) co_return Condition{.well = true};
  if (version == record.from)
    co_return Condition{
        .hopeless = true,
        .reason = reason::rolled_back,
        .message = fmt::format("version {} runs again: {} was rolled back, or never booted; the agent does not try it "
                               "again on this node unless its Node is annotated with {}=reboot",
                               version, record.to, request_annotation)};
  // The running version is not the expected one, for example a newer one. That is accepted if the back end reports no
  // need for a reboot, unless the update tool offers the expected version again: for example, RAUC may not know what it
  // has written. The agent would then write that version and reboot for it again and again.
  const Updates& updates = need.updates();
  const bool offered_again = updates.need == Need::yes && updates.target == record.to;
  if (need.answered() && need.pending().need == Need::no && updates.need != Need::unknown && !offered_again)
    co_return Condition{.well = true};
  co_return Condition{.reason = reason::version_unexpected,
                      .message = fmt::format("version {} runs, expected {}{}", version, record.to,
                                             offered_again ? ", which the update tool offers again" : "")};
}

asio::awaitable<Condition> look_at_node(const Context& context, RebootNeed& need) {
  auto complete = co_await context.parts.host.boot_complete(context.within(request_timeout));
  if (!complete) co_return Condition{.reason = reason::boot_not_complete, .message = complete.error().message()};
  if (!*complete) co_return Condition{.reason = reason::boot_not_complete, .message = "the boot has not finished yet"};
  TimePoint later = TimePoint::max();
  if (const auto foreign = context.view.foreign_boot(later))
    co_return Condition{.reason = foreign->reason, .message = foreign->message};
  if (!context.view.kubelet_reports_this_boot())
    co_return Condition{.reason = reason::node_not_ready,
                        .message = "the kubelet does not report the node Ready for this boot"};
  co_return co_await look_at_version(context, need);
}

// Looked at last, and after the hooks: waiting for it must not hide a version that was rolled back, and a hook may be
// what makes the node ready.
Condition look_at_readiness(const Context& context) {
  std::string lacks = lacks_now(context);
  if (lacks.empty()) return {.well = true};
  return {.reason = reason::condition_not_met, .message = std::move(lacks)};
}

// The last look at the Node before the agent goes on. It does not rely on the watch, which may be silent, and a
// readiness taint may come late.
class LastLook {
 public:
  explicit LastLook(const Context& context) : context_(context) {}

  // Returns false if the Node was not read, after a pause. Shows why from the second failure on.
  asio::awaitable<bool> read() {
    const std::uint64_t news = context_.view.news();
    auto node = co_await context_.client.get_node(context_.options.node, context_.within(request_timeout));
    if (node && node->uid == context_.node().uid) {
      context_.view.learn(*std::move(node), news);
      backoff_.reset();
      failed_before_ = false;
      co_return true;
    }
    if (node || k8s::is_gone(node.error())) {
      context_.activity.reload();
      co_return false;
    }
    if (std::exchange(failed_before_, true))
      co_await context_.writer.show(
          reason::api_unavailable,
          "the agent cannot read its Node once more before it goes on, and tries again: " + node.error().message());
    co_await context_.pause(backoff_.next(context_.rng, node.error().retry_after));
    co_return false;
  }

 private:
  const Context& context_;
  Backoff backoff_{patience};
  bool failed_before_ = false;
};

// Returns true if a node that is degraded for this reason begins another attempt only when a person requests it.
bool needs_person(std::string_view cause) {
  return cause == reason::reboot_failed || cause == reason::update_failed || cause == reason::update_blocked ||
         cause == reason::apply_failed;
}

std::function<bool()> when_ended(const Context& context) {
  return [&activity = context.activity] { return activity.ended(); };
}

}  // namespace

asio::awaitable<Decision> verify(const Context& context, RebootNeed& need, Hooks& hooks) {
  Record& record = context.record;
  const Duration limit = context.options.times.verify_limit;
  TimePoint deadline = context.at(record.deadline.value_or(context.wall()), limit);
  LastLook last_look(context);
  while (!context.activity.must_reload()) {
    Condition node = co_await look_at_node(context, need);
    if (node.well && !has_passed(record, HookPoint::after_boot)) {
      const HookResult result = co_await hooks.pass(HookPoint::after_boot, when_ended(context));
      if (result.failed()) co_return result.decision(Event::not_verified);
      // The time of the hooks does not count, because what follows may depend on them. The agent may have been
      // restarted meanwhile, so it does not know how long they took, and the whole limit begins anew. The deadline is
      // written together with the end of the hooks. They may have run for long, so check the node again.
      if (result.outcome == HookResult::Outcome::passed) {
        record.deadline = context.wall() + std::chrono::duration_cast<WallTime::duration>(limit);
        deadline = context.within(limit);
      }
      continue;
    }
    if (node.well) node = look_at_readiness(context);
    if (node.well) {
      if (!co_await last_look.read()) continue;
      if (context.view.kubelet_reports_this_boot() && look_at_readiness(context).well)
        co_return Decision{Event::verified};
      continue;
    }
    if (node.hopeless || context.now() >= deadline) co_return Decision{Event::not_verified, node.reason, node.message};
    co_await context.writer.show(node.reason, node.message);
    co_await context.activity.wait(std::min(deadline, context.within(look_interval)));
  }
  co_return Decision{Event::not_verified};
}

asio::awaitable<Decision> soak(const Context& context, Hooks& hooks) {
  if (context.rebooted()) co_return Decision{Event::boot_changed};
  const Record& record = context.record;
  const TimePoint end = context.at(record.deadline.value_or(context.wall()), context.options.times.soak);
  const std::string done = record.began ? "updated" : "booted";
  LastLook last_look(context);
  const auto is_well = [&context] { return context.node().ready && look_at_readiness(context).well; };
  while (!context.activity.must_reload()) {
    const bool well = is_well();
    if (well && context.now() >= end) {
      if (!co_await last_look.read() || !is_well()) continue;
      if (has_passed(record, HookPoint::before_release)) break;
      const HookResult result = co_await hooks.pass(HookPoint::before_release, when_ended(context));
      if (result.failed()) co_return result.decision(Event::hook_failed);
      // The hooks may have run for long, so look at the node again.
      continue;
    }
    if (well)
      co_await context.writer.show(
          reason::soaking,
          fmt::format("{}; the slot is released after the soak time, at {:%FT%TZ}", done,
                      std::chrono::floor<std::chrono::seconds>(record.deadline.value_or(context.wall()))));
    else if (!context.node().ready)
      co_await context.writer.show(reason::node_not_ready, done + ", but the node is not Ready, so it keeps its slot");
    else
      co_await context.writer.show(reason::condition_not_met, fmt::format("{}, so the node keeps its slot: {}", done,
                                                                          look_at_readiness(context).message));
    co_await context.activity.wait(well ? end : TimePoint::max());
  }
  co_return Decision{Event::soaked};
}

asio::awaitable<Decision> stay_degraded(const Context& context, RebootNeed& need, GateWatch& gates, Hooks& hooks) {
  const Record& record = context.record;
  Activity& activity = context.activity;
  if (context.rebooted() && record.cause != reason::record_unreadable) co_return Decision{Event::boot_changed};
  if (record.cause == reason::hook_failed) {
    co_await hooks.until_healed();
    co_return Decision{Event::healed};
  }
  co_await need.first_answer();
  // Nothing can show that the cause BootIdUnchanged is resolved, so only a person can end the state.
  while (!activity.must_reload() && record.cause == reason::boot_id_unchanged) {
    if (need.requested()) co_return Decision{Event::needed};
    co_await context.writer.show(record.cause, record.cause_message);
    co_await activity.wait(TimePoint::max());
  }
  // The cause of a failed verification may be resolved without a person. A failed reboot needs a person, unless a
  // reboot is not needed any more.
  const bool unverified = !record.uncordon && record.cause != reason::record_unreadable;
  while (!activity.must_reload()) {
    TimePoint until = TimePoint::max();
    if (unverified && need.requested()) co_return Decision{Event::needed};
    if (unverified) {
      const Condition node = co_await look_at_node(context, need);
      // What the node still lacks may depend on the hooks, so they come first.
      const bool hooks_passed = has_passed(record, HookPoint::after_boot);
      if (node.well && (!hooks_passed || look_at_readiness(context).well)) co_return Decision{Event::healed};
      until = context.within(std::chrono::minutes(1));
    } else if (record.cause != reason::record_unreadable) {
      if (need.requested()) co_return Decision{Event::needed};
      const bool lacks = !lacks_since_last_boot(context).empty();
      if (!lacks && has_kept_cordon(context.record)) {
        activity.reload();
        break;
      }
      if (need.all().need == Need::no && !record.requested && !lacks) co_return Decision{Event::not_needed};
      // The failed version says nothing about another one.
      const bool is_another = record.cause == reason::apply_failed && need.all().target != record.to;
      if ((!needs_person(record.cause) || is_another) && need.all().need == Need::yes) {
        const GateAnswer answer = co_await gates.ask(GateQuestion::When::before_turn);
        if (!answer.closed_with(Gate::Effect::degrades)) co_return Decision{Event::needed};
      }
      until = context.within(lacks ? lacks_look : std::chrono::minutes(10));
    }
    co_await context.writer.show(record.cause, record.cause_message);
    co_await activity.wait(until);
  }
  co_return Decision{Event::healed};
}

}  // namespace haulout::agent
