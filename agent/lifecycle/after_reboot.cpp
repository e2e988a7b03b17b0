// The reboot, and what follows it.
#include <fmt/chrono.h>

#include "agent/lifecycle/agent_impl.hpp"
#include "agent/lifecycle/hook_record.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

asio::awaitable<Event> Agent::Impl::reboot() {
  if (rebooted()) co_return Event::boot_changed;
  // The shutdown that our predecessor asked for may be under way.
  co_await shutdown_is_known();
  const auto methods = parts_.host.reboot_methods();
  // The configuration may have changed since the record was written.
  if (methods.empty()) co_return Event::reboot_blocked;
  const bool begins_again = record_.method >= methods.size();
  if (begins_again) record_.method = 0;
  Backoff backoff({std::chrono::seconds(1), 2.0, std::chrono::seconds(30), BackoffOptions::Jitter::equal});
  // The time runs from the request. While it was not asked for, it is not late: the API server may have been away.
  const auto start_again = [this] {
    record_.deadline = wall() + std::chrono::duration_cast<WallTime::duration>(options_.times.reboot_limit);
    return within(options_.times.reboot_limit);
  };
  TimePoint deadline = std::exchange(announced_, false) || begins_again
                           ? start_again()
                           : at(record_.deadline.value_or(wall()), options_.times.reboot_limit);
  // Nor is it late when a predecessor never got so far.
  if (!record_.asked && deadline <= now()) deadline = start_again();
  std::string problem = "the machine did not go down";
  while (!reload_ && now() < deadline) {
    // Somebody else's shutdown refuses to be joined; where it comes to nothing, the next way is tried.
    if (record_.method == 0 && going_down()) {
      co_await show("Rebooting", "somebody shuts the machine down already");
      co_await wait(std::min(deadline, now() + look_interval));
      if (auto id = parts_.host.boot_id(); id && *id != record_.boot_id) break;
      if (!going_down()) deadline = start_again();
      continue;
    }
    auto trouble = co_await prove();
    if (trouble && *trouble) co_return **trouble;
    if (trouble) {
      if (!(co_await reboot_blocked_by()).empty()) co_return Event::reboot_blocked;
      // What was proved was proved of another Node, or by a record that is no longer ours.
      if (reload_) break;
      if (parts_.shutdown) parts_.shutdown->release();
      auto asked = co_await parts_.host.reboot(record_.method, std::min(deadline, within(request_timeout)));
      // An answer that did not come may have been lost with the machine: nothing is undone under one that goes down.
      const bool lost = !asked && (asked.error().code() == Errc::timeout || asked.error().code() == Errc::reset);
      if (!asked) problem = methods[record_.method] + ": " + asked.error().message();
      // Refused because of somebody who was faster: no other way is tried for that.
      if (!asked && !lost && !(co_await reboot_blocked_by()).empty()) co_return Event::reboot_blocked;
      if (asked || lost) {
        record_.asked = true;
        co_await show("Rebooting", "the reboot was asked for (" + methods[record_.method] + ")");
        co_await until_down(deadline);
      }
      break;
    }
    // Nothing proceeds without a proof.
    deadline = start_again();
    co_await show("ApiUnavailable", "nobody can prove that the node is ready: " + trouble.error().message());
    co_await clock_.sleep_until(now() + backoff.next(rng_, trouble.error().retry_after));
    deadline = start_again();
  }
  if (auto id = parts_.host.boot_id(); id && *id != record_.boot_id) {
    boot_id_ = *id;
    co_return Event::boot_changed;
  }
  if (record_.method + 1 < methods.size()) co_return Event::reboot_overdue;
  cause_ = "RebootFailed";
  cause_message_ = "the reboot did not happen: " + problem + "; reboot the machine, or annotate its Node with " +
                   std::string(request_annotation) + "=reboot to have it tried again";
  co_return Event::reboot_impossible;
}

// Where nobody can tell, the way that does not answer is to be tried, and after it the next one.
asio::awaitable<std::string> Agent::Impl::reboot_blocked_by() {
  auto who = co_await parts_.host.blocked_by(within(request_timeout));
  co_return who ? *std::move(who) : std::string();
}

// A machine that goes down takes this process with it, unless the process serves it from elsewhere.
asio::awaitable<void> Agent::Impl::until_down(TimePoint deadline) {
  for (auto id = parts_.host.boot_id(); now() < deadline && (!id || *id == record_.boot_id); id = parts_.host.boot_id())
    co_await clock_.sleep_until(std::min(deadline, now() + look_interval));
}

asio::awaitable<Agent::Impl::Finding> Agent::Impl::look_at_node() {
  auto complete = co_await parts_.host.boot_complete(within(request_timeout));
  if (!complete) co_return Finding{.reason = "BootNotComplete", .message = complete.error().message()};
  if (!*complete) co_return Finding{.reason = "BootNotComplete", .message = "the boot has not come to its end yet"};
  if (!node_.ready || (!node_.boot_id.empty() && node_.boot_id != boot_id_))
    co_return Finding{.reason = "NodeNotReady", .message = "the kubelet has not reported this boot Ready yet"};
  if (record_.to.empty()) co_return Finding{.well = true};
  const Result<> known = co_await learn_version();
  if (!known) co_return Finding{.reason = "BackendUnknown", .message = known.error().message()};
  if (booted_ == record_.to) co_return Finding{.well = true};
  if (booted_ == record_.from)
    co_return Finding{.hopeless = true,
                      .reason = "RolledBack",
                      .message = fmt::format("version {} runs again: {} was rolled back, or never booted; it is not "
                                             "tried again on this node unless its Node is annotated with {}=reboot",
                                             booted_, record_.to, request_annotation)};
  // Somebody went further than we meant to, and the system is content.
  if (answered_ && pending_.need == Need::no) co_return Finding{.well = true};
  co_return Finding{.reason = "VersionUnexpected",
                    .message = fmt::format("version {} runs, {} was to", booted_, record_.to)};
}

asio::awaitable<Event> Agent::Impl::verify() {
  const TimePoint deadline = at(record_.deadline.value_or(wall()), options_.times.verify_limit);
  while (!reload_) {
    const Finding finding = co_await look_at_node();
    if (finding.well) {
      if (has_passed(record_, HookPoint::after_boot)) co_return Event::verified;
      const Hooks hooks = co_await pass_hooks(HookPoint::after_boot);
      if (hooks == Hooks::failed) co_return Event::not_verified;
      // That may have taken a while: is everything still well?
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
      co_await show("Soaking",
                    fmt::format("{}; watched until {:%FT%TZ} before the next node may go", done,
                                std::chrono::floor<std::chrono::seconds>(record_.deadline.value_or(wall()))));
    else
      co_await show("NodeNotReady", done + ", but the node is not Ready: no other node may go meanwhile");
    co_await wait(node_.ready ? end : TimePoint::max());
  }
  const Hooks hooks = co_await pass_hooks(HookPoint::before_release);
  co_return hooks == Hooks::failed ? Event::hook_failed : Event::soaked;
}

asio::awaitable<Event> Agent::Impl::stay_degraded() {
  if (rebooted() && record_.cause != "RecordUnreadable") co_return Event::boot_changed;
  if (record_.cause == "HookFailed") co_return co_await retry_hooks();
  co_await first_answer();
  // What a verification found wrong may have healed; a reboot that failed is for a person, or for the need to go away.
  const bool unverified = !record_.uncordon && record_.cause != "RecordUnreadable";
  while (!reload_) {
    TimePoint until = TimePoint::max();
    if (unverified && reboot_requested(node_)) co_return Event::needed;
    if (unverified) {
      const Finding finding = co_await look_at_node();
      if (finding.well) co_return Event::healed;
      until = now() + std::chrono::minutes(1);
    } else if (record_.cause != "RecordUnreadable") {
      if (reboot_requested(node_)) co_return Event::needed;
      if (pending_.need == Need::no && !record_.requested) co_return Event::not_needed;
      if (record_.cause != "RebootFailed" && pending_.need == Need::yes) {
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
