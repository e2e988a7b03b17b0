#include "agent/lifecycle/rebooting.hpp"

#include "agent/lifecycle/node_record.hpp"
#include "base/scope_exit.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Interval at which the agent asks whether a blocked reboot is still blocked; no event reports that.
constexpr Duration block_look = std::chrono::minutes(1);
// The shortest pause after a failed proof. Without it, showing the failure would change the agent's Node, and that
// change would start the next proof at once.
constexpr Duration least_pause = std::chrono::seconds(2);
// A proof is valid for this time. If writing the record between the proof and the request takes longer, the agent
// proves everything again.
constexpr Duration proof_keeps = std::chrono::seconds(5);
// Time limit for Host::started().
constexpr Duration witness_limit = std::chrono::seconds(5);
// If the reboot was already requested when the agent started, the agent waits at least this long for evidence of a boot
// before it requests another one, because the kubelet may start later than the agent.
constexpr Duration witness_time = std::chrono::minutes(2);

asio::awaitable<BootMarks> boot_marks(const Context& context) {
  auto start = co_await context.parts.host.started(context.within(witness_limit));
  co_return BootMarks{context.node().boot_id, start ? *std::move(start) : MachineStart()};
}

// Returns what blocks the reboot for now; empty if nothing does. Also empty if the host cannot answer: then the agent
// tries the method nevertheless, and after it the next one.
asio::awaitable<std::string> reboot_blocked_by(const Context& context) {
  auto who = co_await context.parts.host.blocked_by(context.within(request_timeout));
  co_return who ? *std::move(who) : std::string();
}

Decision boot_id_unchanged(const Context& context, const std::string& evidence) {
  return {Event::boot_unknown, reason::boot_id_unchanged, unchanged_boot_id(evidence, context.options.node)};
}

}  // namespace

asio::awaitable<Decision> Ready::run() {
  if (context_.rebooted()) co_return Decision{Event::boot_changed};
  co_await with_task_group([this](TaskGroup& group) { return watched(group); });
  co_return context_.activity.decision().value_or(Decision{Event::turn_lost});
}

asio::awaitable<void> Ready::watched(TaskGroup& group) {
  Activity& activity = context_.activity;
  co_await need_.first_answer();
  const bool by_others = context_.parts.host.reboot_methods().empty();
  group.spawn(slot_.follow());
  group.spawn(gates_.follow_pauses());
  group.spawn(pods_.follow(
      RemainingPods::Learns::yes, [&activity] { activity.interrupt({Event::emptiness_lost}); },
      [this] { context_.writer.conditions().withdraw_proof(); }));
  Backoff backoff(eager_patience);
  TimePoint not_before{};
  while (!activity.ended()) {
    if (!need_.reboot_wanted() && need_.pending().need == Need::no) co_return activity.decide({Event::not_needed});
    if (context_.now() < not_before) {
      co_await activity.wait(not_before);
      continue;
    }
    auto trouble = co_await proof_.prove();
    // A decision that was made during the proof takes precedence, because it is newer.
    if (activity.ended()) break;
    if (by_others) {
      if (auto decision = co_await booted_unnoticed()) co_return activity.decide(*std::move(decision));
    }
    if (trouble && !*trouble) context_.writer.show_ready(true);
    TimePoint until = TimePoint::max();
    if (!trouble) {
      until = context_.within(backoff.next(context_.rng, trouble.error().retry_after));
      not_before = trouble.error().retry_after ? until : context_.within(least_pause);
      // Another node may have the slot by now, and who reboots this machine because of the file does not ask again.
      if (proof_.slot_uncertain()) context_.writer.show_ready(false);
      const char* why = proof_.slot_uncertain() ? reason::slots_unavailable : reason::api_unavailable;
      if (context_.writer.status().reason != why)
        group.spawn(show(why, "the node is drained, but the agent cannot verify now that it may be rebooted: " +
                                  trouble.error().message()));
    } else if (*trouble) {
      activity.decide(**trouble);
    } else if (by_others) {
      backoff.reset();
      group.spawn(show({}, "drained and cordoned: the node may be rebooted at any time"));
    } else if (need_.pending().need == Need::unknown && !need_.requested()) {
      group.spawn(show(reason::backend_unknown, need_.pending().problem));
    } else if (const std::string who = co_await reboot_blocked_by(context_); activity.ended()) {
      break;
    } else if (!who.empty()) {
      backoff.reset();
      until = context_.within(block_look);
      group.spawn(show(reason::cannot_reboot, who));
    } else {
      activity.decide({Event::reboot_due});
    }
    // Each change of the node, its pods or its slot starts another proof.
    if (!activity.decision()) co_await activity.wait(until);
  }
}

asio::awaitable<std::optional<Decision>> Ready::booted_unnoticed() {
  const BootMarks marks = co_await boot_marks(context_);
  if (!context_.record.marks) context_.record.marks = marks;
  const std::string shown = restart_shown(*context_.record.marks, marks, context_.view.boot_id());
  co_return shown.empty() ? std::nullopt : std::optional(boot_id_unchanged(context_, shown));
}

asio::awaitable<void> Ready::show(std::string reason, std::string message) {
  show_next_ = {std::move(reason), std::move(message)};
  if (std::exchange(shows_, true)) co_return;
  const ScopeExit over([this] { shows_ = false; });
  while (show_next_) {
    auto [next_reason, next_message] = *std::exchange(show_next_, std::nullopt);
    co_await context_.writer.show(std::move(next_reason), std::move(next_message));
  }
}

asio::awaitable<Decision> Rebooting::run() {
  if (context_.rebooted()) co_return Decision{Event::boot_changed};
  // A shutdown that the previous process requested may be under way, so wait until that is known.
  co_await shutdowns_.until_known();
  const auto methods = context_.parts.host.reboot_methods();
  Record& record = context_.record;
  // The configuration may have changed since the record was written, so that the recorded method does not exist any
  // more.
  if (methods.empty()) co_return Decision{Event::reboot_blocked};
  if (record.method >= methods.size()) {
    record.method = 0;
    record.asked = false;
  }
  std::optional<Decision> decision;
  co_await with_task_group([this, &decision](TaskGroup& group) {
    // Once the reboot is requested, nothing takes it back. But the node must not be called drained any more.
    const auto withdraw = [this] { context_.writer.conditions().withdraw_proof(); };
    group.spawn(pods_.follow(RemainingPods::Learns::no, withdraw, withdraw));
    return watched(decision);
  });
  co_return *std::move(decision);
}

asio::awaitable<void> Rebooting::watched(std::optional<Decision>& decision) {
  decision = co_await by_one_method(context_.record.method + 1 == context_.parts.host.reboot_methods().size());
}

std::string Rebooting::method() const {
  const auto methods = context_.parts.host.reboot_methods();
  return context_.record.method < methods.size() ? methods[context_.record.method] : "";
}

asio::awaitable<Decision> Rebooting::by_one_method(bool last) {
  Record& record = context_.record;
  Activity& activity = context_.activity;
  problem_ = "the machine did not go down";
  // If the record says that the reboot was requested, the previous process may have sent the request, or may have been
  // killed just before it did. That cannot be found out, so the deadline in the record stays in force.
  const bool asked_before = record.asked;
  if (!asked_before) {
    auto decision = co_await request();
    if (decision) co_return *std::move(decision);
  }
  std::string restart;
  if (record.asked && !activity.must_reload()) {
    const Duration limit = context_.options.times.reboot_limit;
    TimePoint deadline = context_.at(record.deadline.value_or(context_.wall()), limit);
    if (asked_before) deadline = std::max(deadline, context_.within(witness_time));
    co_await context_.writer.show(reason::rebooting, "the reboot was requested (" + method() + ")");
    restart = co_await until_down(deadline);
  }
  if (auto id = later_boot()) {
    context_.view.set_boot_id(*std::move(id));
    co_return Decision{Event::boot_changed};
  }
  if (!restart.empty()) co_return boot_id_unchanged(context_, restart);
  // If there is no need any more, a boot has satisfied it, even if the agent did not notice that boot. Another reboot
  // would be useless.
  const bool still_needed = record.requested || !need_.answered() || need_.pending().need != Need::no;
  if (still_needed && asked_before && !activity.must_reload()) {
    // The previous process requested a reboot, and the machine may have rebooted unnoticed. Count that reboot for the
    // reboot limit.
    if (auto brake = co_await braked()) co_return *std::move(brake);
    // The previous process may have been killed before it sent the request. Therefore try the same method again, but
    // only once.
    if (!activity.must_reload() && !std::exchange(record.asked_again, true)) {
      record.asked = false;
      co_return co_await by_one_method(last);
    }
  }
  if (still_needed && !last) co_return Decision{Event::reboot_overdue};
  co_return Decision{Event::reboot_impossible, reason::reboot_failed,
                     "the reboot did not happen: " + problem_ +
                         (still_needed ? "; reboot the machine, or annotate its Node with " +
                                             std::string(request_annotation) + "=reboot to try again"
                                       : "; the reboot is not needed any more")};
}

asio::awaitable<std::optional<Decision>> Rebooting::braked() {
  const Record& record = context_.record;
  // Use the need as it was when the slot was taken, because the back end may not have answered in this process yet.
  Pending wanted{.need = Need::yes, .reasons = record.reasons, .target = record.to};
  GateQuestion question{.node = context_.node(),
                        .record = record,
                        .pending = std::move(wanted),
                        .requested = record.requested,
                        .when = GateQuestion::When::with_turn};
  const GateAnswer gates = co_await context_.parts.gates.ask(std::move(question), context_.within(request_timeout));
  const Gate* brake = gates.closed_with(Gate::Effect::degrades);
  if (!brake) co_return std::nullopt;
  co_return Decision{Event::reboot_impossible, brake->reason,
                     "the agent does not request the reboot again, because it is unknown whether its first request "
                     "rebooted the machine: " +
                         brake->message};
}

std::optional<std::string> Rebooting::later_boot() const {
  auto id = context_.parts.host.boot_id();
  if (!id || *id == context_.record.boot_id) return std::nullopt;
  return *std::move(id);
}

TimePoint Rebooting::start_limit() {
  const Duration limit = context_.options.times.reboot_limit;
  context_.record.deadline = context_.wall() + std::chrono::duration_cast<WallTime::duration>(limit);
  return context_.within(limit);
}

asio::awaitable<std::optional<Decision>> Rebooting::request() {
  Record& record = context_.record;
  Activity& activity = context_.activity;
  Backoff backoff(eager_patience);
  // The deadline counts from the request. Until the request, the loop moves it forward, because the API server may be
  // unavailable for long.
  TimePoint deadline = start_limit();
  while (!activity.must_reload() && context_.now() < deadline) {
    // While another program shuts the machine down, a request by the first method would be refused. So the agent waits.
    // If the machine is not down at the deadline, the agent tries the next method.
    if (record.method == 0 && shutdowns_.going_down()) {
      co_await context_.writer.show(reason::rebooting, "a person or program is already shutting the machine down");
      co_await activity.wait(std::min(deadline, context_.within(look_interval)));
      if (later_boot()) break;
      if (!shutdowns_.going_down()) deadline = start_limit();
      continue;
    }
    auto trouble = co_await proof_.prove();
    if (trouble && !*trouble && !(co_await reboot_blocked_by(context_)).empty())
      trouble = Decision{Event::reboot_blocked};
    if (trouble && *trouble) {
      withdraw_request(record);
      co_return *std::move(trouble);
    }
    // The Node was replaced, so the proof was about another Node; or another client has written the record.
    if (activity.must_reload()) break;
    deadline = start_limit();
    if (!trouble) {
      // Without a proof the agent must not request the reboot.
      co_await context_.writer.show(
          reason::api_unavailable,
          "the agent cannot verify that the node is drained and may be rebooted: " + trouble.error().message());
      co_await context_.pause(backoff.next(context_.rng, trouble.error().retry_after));
      deadline = start_limit();
      continue;
    }
    const TimePoint proved = context_.now();
    if (!record.asked) {
      note_request(record, co_await boot_marks(context_), context_.wall());
      co_await context_.writer.show(reason::rebooting, "requesting the reboot (" + method() + ")");
    }
    if (!activity.must_reload() && context_.now() - proved <= proof_keeps) co_return co_await request_of_host(deadline);
  }
  co_return std::nullopt;
}

asio::awaitable<std::optional<Decision>> Rebooting::request_of_host(TimePoint deadline) {
  Record& record = context_.record;
  // The view of the Node contains changes since the proof: from the watch, and from the answer to the write of the
  // record. So a cordon that was removed since the proof is noticed here.
  if (!context_.node().unschedulable) {
    withdraw_request(record);
    co_return cordon_lost();
  }
  shutdowns_.permit_own_reboot();
  auto asked = co_await context_.parts.host.reboot(record.method, deadline);
  if (asked) co_return std::nullopt;
  problem_ = method() + ": " + asked.error().message();
  // If the answer did not arrive, the machine may already go down, so the request stays in the record.
  if (asked.error().code() == Errc::timeout || asked.error().code() == Errc::reset) co_return std::nullopt;
  withdraw_request(record);
  // If the host refused because something blocks the reboot, the agent does not try another method.
  if (!(co_await reboot_blocked_by(context_)).empty()) co_return Decision{Event::reboot_blocked};
  co_return std::nullopt;
}

// A shutdown normally ends this process, unless the process runs on another machine. In a container the boot id is that
// of the host, so a process that started after a reboot may find the same one. Therefore the loop also compares the
// boot marks.
asio::awaitable<std::string> Rebooting::until_down(TimePoint deadline) {
  const std::optional<BootMarks>& before = context_.record.marks;
  while (!context_.activity.must_reload() && context_.now() < deadline) {
    if (later_boot()) break;
    std::string shown;
    if (before) shown = restart_shown(*before, co_await boot_marks(context_), context_.view.boot_id());
    if (!shown.empty()) co_return shown;
    co_await context_.clock.sleep_until(std::min(deadline, context_.within(look_interval)));
  }
  co_return "";
}

}  // namespace haulout::agent
