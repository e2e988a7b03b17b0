// The reboot, and the states after it.
#include <fmt/chrono.h>

#include "agent/lifecycle/agent_impl.hpp"
#include "agent/node/hook_record.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// A proof is valid for this time. If writing the record between the proof and the request takes longer, the agent
// proves everything again.
constexpr Duration proof_keeps = std::chrono::seconds(5);
// Time limit for Host::started().
constexpr Duration witness_limit = std::chrono::seconds(5);
// If the reboot was already requested when the agent started, the agent waits at least this long for evidence of a boot
// before it requests another one. The kubelet may start later than the agent.
constexpr Duration witness_time = std::chrono::minutes(2);

}  // namespace

asio::awaitable<Event> Agent::Impl::reboot() {
  if (rebooted()) co_return Event::boot_changed;
  // A shutdown that the previous process requested may be under way.
  co_await shutdown_is_known();
  const auto methods = parts_.host.reboot_methods();
  // The configuration may have changed since the record was written.
  if (methods.empty()) co_return Event::reboot_blocked;
  if (record_.method >= methods.size()) {
    record_.method = 0;
    record_.asked = false;
  }
  const std::string& method = methods[record_.method];
  std::string problem = "the machine did not go down";
  // The previous process may have requested the reboot, or may have been killed just before. That cannot be found out,
  // so its deadline stays in force.
  const bool asked_before = record_.asked;
  if (!asked_before) {
    const std::optional<Event> decided = co_await ask_for_reboot(method, problem);
    if (decided) co_return *decided;
  }
  std::string restart;
  if (record_.asked && !reload_) {
    TimePoint deadline = at(record_.deadline.value_or(wall()), options_.times.reboot_limit);
    if (asked_before) deadline = std::max(deadline, within(witness_time));
    co_await show(reason::rebooting, "the reboot was requested (" + method + ")");
    restart = co_await until_down(deadline);
  }
  if (auto id = later_boot()) {
    boot_id_ = *std::move(id);
    co_return Event::boot_changed;
  }
  if (!restart.empty()) {
    cause_ = reason::boot_id_unchanged;
    cause_message_ = unchanged_boot_id(restart, options_.node);
    co_return Event::boot_unknown;
  }
  // If the need has gone meanwhile, a boot has served it, even if no agent noticed that boot. Another reboot would be
  // useless.
  const bool still_needed = record_.requested || !answered_ || pending_.need != Need::no;
  // The previous process requested a reboot, and the machine may have rebooted unnoticed. That reboot counts for the
  // reboot limit.
  if (still_needed && asked_before && !reload_ && co_await braked()) co_return Event::reboot_impossible;
  // The previous process may have been killed before it sent the request. So the agent tries the same method again, but
  // only once.
  if (still_needed && asked_before && !reload_ && !std::exchange(record_.asked_again, true)) {
    record_.asked = false;
    co_return co_await reboot();
  }
  if (still_needed && record_.method + 1 < methods.size()) co_return Event::reboot_overdue;
  cause_ = reason::reboot_failed;
  cause_message_ = "the reboot did not happen: " + problem + "; reboot the machine, or annotate its Node with " +
                   std::string(request_annotation) + "=reboot to try again";
  co_return Event::reboot_impossible;
}

asio::awaitable<bool> Agent::Impl::braked() {
  // The need as it was when the slot was taken, because the back end of this process may not have answered yet.
  Pending wanted{.need = Need::yes, .reasons = record_.reasons, .target = record_.to};
  GateQuestion question{node_, record_, std::move(wanted), record_.requested, GateQuestion::When::with_turn};
  const GateAnswer gates = co_await parts_.gates.ask(std::move(question), within(request_timeout));
  const Gate* brake = gates.closed_with(Gate::Effect::degrades);
  if (!brake) co_return false;
  cause_ = brake->reason;
  cause_message_ = "it is unknown whether the machine was rebooted: " + brake->message;
  co_return true;
}

std::optional<std::string> Agent::Impl::later_boot() const {
  auto id = parts_.host.boot_id();
  if (!id || *id == record_.boot_id) return std::nullopt;
  return *std::move(id);
}

TimePoint Agent::Impl::reboot_time() {
  record_.deadline = wall() + std::chrono::duration_cast<WallTime::duration>(options_.times.reboot_limit);
  return within(options_.times.reboot_limit);
}

asio::awaitable<std::optional<Event>> Agent::Impl::ask_for_reboot(std::string method, std::string& problem) {
  Backoff backoff({std::chrono::seconds(1), 2.0, std::chrono::seconds(30), BackoffOptions::Jitter::equal});
  // The deadline counts from the request. Until then the loop moves it forward, because the API server may be
  // unavailable for long.
  TimePoint deadline = reboot_time();
  while (!reload_ && now() < deadline) {
    // While another program shuts the machine down, a request by the first method would be refused. If the machine has
    // not gone down at the deadline, the agent tries the next method.
    if (record_.method == 0 && going_down()) {
      co_await show(reason::rebooting, "the machine is already shutting down, not requested by the agent");
      co_await wait(std::min(deadline, now() + look_interval));
      if (later_boot()) break;
      if (!going_down()) deadline = reboot_time();
      continue;
    }
    auto trouble = co_await prove();
    if (trouble && !*trouble && !(co_await reboot_blocked_by()).empty()) trouble = Event::reboot_blocked;
    if (trouble && *trouble) {
      withdraw_request(record_);
      co_return **trouble;
    }
    // The proof was about a different Node, or the record is not the agent's own any more.
    if (reload_) break;
    deadline = reboot_time();
    if (!trouble) {
      // Without a proof the agent must not go on.
      co_await show(reason::api_unavailable,
                    "the agent cannot prove that the node is ready: " + trouble.error().message());
      co_await clock_.sleep_until(now() + backoff.next(rng_, trouble.error().retry_after));
      deadline = reboot_time();
      continue;
    }
    const TimePoint proved = now();
    if (!record_.asked) {
      note_request(record_, co_await boot_marks(), wall());
      co_await show(reason::rebooting, "requesting the reboot (" + method + ")");
    }
    if (!reload_ && now() - proved <= proof_keeps) co_return co_await ask_host(method, deadline, problem);
  }
  co_return std::nullopt;
}

asio::awaitable<std::optional<Event>> Agent::Impl::ask_host(std::string method, TimePoint deadline,
                                                            std::string& problem) {
  // Changes since the proof are known from the watch, and from the answer to the write of the record.
  if (!node_.unschedulable) {
    withdraw_request(record_);
    co_return uncordoned_by_somebody();
  }
  if (parts_.shutdown) parts_.shutdown->release();
  auto asked = co_await parts_.host.reboot(record_.method, deadline);
  if (asked) co_return std::nullopt;
  problem = method + ": " + asked.error().message();
  // If the answer did not arrive, the machine may already go down. So the agent does not undo the request.
  if (asked.error().code() == Errc::timeout || asked.error().code() == Errc::reset) co_return std::nullopt;
  withdraw_request(record_);
  // If the host refused because something blocks the reboot, the agent does not try another method.
  if (!(co_await reboot_blocked_by()).empty()) co_return Event::reboot_blocked;
  co_return std::nullopt;
}

asio::awaitable<BootMarks> Agent::Impl::boot_marks() {
  auto start = co_await parts_.host.started(within(witness_limit));
  co_return BootMarks{node_.boot_id, start ? *std::move(start) : MachineStart()};
}

// If the host cannot answer, the agent tries the method nevertheless, and then the next one.
asio::awaitable<std::string> Agent::Impl::reboot_blocked_by() {
  auto who = co_await parts_.host.blocked_by(within(request_timeout));
  co_return who ? *std::move(who) : std::string();
}

// A shutdown normally ends this process, unless the process runs elsewhere. A process that started after the boot may
// find the same boot id, because in a container the boot id is that of the host. Therefore the loop also compares the
// boot marks.
asio::awaitable<std::string> Agent::Impl::until_down(TimePoint deadline) {
  while (!reload_ && now() < deadline) {
    if (later_boot()) break;
    std::string shown;
    if (record_.marks) shown = restart_shown(*record_.marks, co_await boot_marks(), boot_id_);
    if (!shown.empty()) co_return shown;
    co_await clock_.sleep_until(std::min(deadline, now() + look_interval));
  }
  co_return "";
}

asio::awaitable<Agent::Impl::Finding> Agent::Impl::look_at_node() {
  auto complete = co_await parts_.host.boot_complete(within(request_timeout));
  if (!complete) co_return Finding{.reason = reason::boot_not_complete, .message = complete.error().message()};
  if (!*complete) co_return Finding{.reason = reason::boot_not_complete, .message = "the boot has not finished yet"};
  TimePoint later = TimePoint::max();
  if (const auto foreign = foreign_boot(later))
    co_return Finding{.reason = foreign->reason, .message = foreign->message};
  if (!node_.ready || (!node_.boot_id.empty() && node_.boot_id != boot_id_))
    co_return Finding{.reason = reason::node_not_ready,
                      .message = "the kubelet has not reported the node Ready since this boot"};
  if (record_.to.empty()) co_return Finding{.well = true};
  const Result<> known = co_await learn_version();
  if (!known) co_return Finding{.reason = reason::backend_unknown, .message = known.error().message()};
  if (booted_ == record_.to) co_return Finding{.well = true};
  if (booted_ == record_.from)
    co_return Finding{
        .hopeless = true,
        .reason = reason::rolled_back,
        .message = fmt::format("version {} runs again: {} was rolled back, or never booted; the agent does not try it "
                               "again on this node unless its Node is annotated with {}=reboot",
                               booted_, record_.to, request_annotation)};
  // Another version than the expected one runs, for example a newer one. That is fine if the back end needs no reboot.
  if (answered_ && pending_.need == Need::no) co_return Finding{.well = true};
  co_return Finding{.reason = reason::version_unexpected,
                    .message = fmt::format("version {} runs, expected {}", booted_, record_.to)};
}

asio::awaitable<Event> Agent::Impl::verify() {
  const TimePoint deadline = at(record_.deadline.value_or(wall()), options_.times.verify_limit);
  while (!reload_) {
    const Finding finding = co_await look_at_node();
    if (finding.well) {
      if (has_passed(record_, HookPoint::after_boot)) co_return Event::verified;
      const Hooks hooks = co_await pass_hooks(HookPoint::after_boot);
      if (hooks == Hooks::failed) co_return Event::not_verified;
      // The hooks may have taken long, so the agent checks the node again.
      continue;
    }
    if (finding.hopeless || now() >= deadline) {
      cause_ = finding.reason;
      cause_message_ = finding.message;
      co_return Event::not_verified;
    }
    co_await show(finding.reason, finding.message);
    co_await wait(std::min(deadline, now() + look_interval));
  }
  co_return Event::not_verified;
}

asio::awaitable<Event> Agent::Impl::soak() {
  if (rebooted()) co_return Event::boot_changed;
  const TimePoint end = at(record_.deadline.value_or(wall()), options_.times.soak);
  const std::string done = record_.began ? "updated" : "booted";
  while (!reload_ && (now() < end || !node_.ready)) {
    if (node_.ready)
      co_await show(reason::soaking,
                    fmt::format("{}; the slot is released after the soak time, at {:%FT%TZ}", done,
                                std::chrono::floor<std::chrono::seconds>(record_.deadline.value_or(wall()))));
    else
      co_await show(reason::node_not_ready, done + ", but the node is not Ready, so it keeps its slot");
    co_await wait(node_.ready ? end : TimePoint::max());
  }
  const Hooks hooks = co_await pass_hooks(HookPoint::before_release);
  co_return hooks == Hooks::failed ? Event::hook_failed : Event::soaked;
}

asio::awaitable<Event> Agent::Impl::stay_degraded() {
  if (rebooted() && record_.cause != reason::record_unreadable) co_return Event::boot_changed;
  if (record_.cause == reason::hook_failed) co_return co_await retry_hooks();
  co_await first_answer();
  // In this case nothing can show that the cause is resolved.
  while (!reload_ && record_.cause == reason::boot_id_unchanged) {
    if (reboot_requested(node_)) co_return Event::needed;
    co_await show(record_.cause, record_.cause_message);
    co_await wait(TimePoint::max());
  }
  // The cause of a failed verification may be resolved without help. A failed reboot needs a person, unless the need
  // for the reboot goes away.
  const bool unverified = !record_.uncordon && record_.cause != reason::record_unreadable;
  while (!reload_) {
    TimePoint until = TimePoint::max();
    if (unverified && reboot_requested(node_)) co_return Event::needed;
    if (unverified) {
      const Finding finding = co_await look_at_node();
      if (finding.well) co_return Event::healed;
      until = now() + std::chrono::minutes(1);
    } else if (record_.cause != reason::record_unreadable) {
      if (reboot_requested(node_)) co_return Event::needed;
      if (pending_.need == Need::no && !record_.requested) co_return Event::not_needed;
      if (record_.cause != reason::reboot_failed && pending_.need == Need::yes) {
        const GateAnswer gates = co_await ask_gates(GateQuestion::When::before_turn);
        if (!gates.closed_with(Gate::Effect::degrades)) co_return Event::needed;
      }
      until = now() + std::chrono::minutes(10);
    }
    co_await show(record_.cause, record_.cause_message);
    co_await wait(until);
  }
  co_return Event::healed;
}

}  // namespace haulout::agent
