#include "agent/lifecycle/after_reboot.hpp"

#include <fmt/chrono.h>

#include "agent/lifecycle/node_writer.hpp"
#include "agent/node/record.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// What verification finds out about the node after its boot.
struct Condition {
  bool well = false;
  bool hopeless = false;  // waiting until the deadline cannot help
  std::string reason{}, message{};
};

asio::awaitable<Condition> look_at_node(const Context& context, RebootNeed& need) {
  const Record& record = context.record;
  auto complete = co_await context.parts.host.boot_complete(context.within(request_timeout));
  if (!complete) co_return Condition{.reason = reason::boot_not_complete, .message = complete.error().message()};
  if (!*complete) co_return Condition{.reason = reason::boot_not_complete, .message = "the boot has not finished yet"};
  TimePoint later = TimePoint::max();
  if (const auto foreign = context.view.foreign_boot(later))
    co_return Condition{.reason = foreign->reason, .message = foreign->message};
  if (!context.view.kubelet_reports_this_boot())
    co_return Condition{.reason = reason::node_not_ready,
                        .message = "the kubelet has not reported the node Ready since this boot"};
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
  // need for a reboot.
  if (need.answered() && need.pending().need == Need::no) co_return Condition{.well = true};
  co_return Condition{.reason = reason::version_unexpected,
                      .message = fmt::format("version {} runs, expected {}", version, record.to)};
}

std::function<bool()> when_ended(const Context& context) {
  return [&activity = context.activity] { return activity.ended(); };
}

}  // namespace

asio::awaitable<Decision> verify(const Context& context, RebootNeed& need, Hooks& hooks) {
  const TimePoint deadline =
      context.at(context.record.deadline.value_or(context.wall()), context.options.times.verify_limit);
  while (!context.activity.must_reload()) {
    const Condition node = co_await look_at_node(context, need);
    if (node.well) {
      if (has_passed(context.record, HookPoint::after_boot)) co_return Decision{Event::verified};
      const HookResult result = co_await hooks.pass(HookPoint::after_boot, when_ended(context));
      if (result.failed()) co_return result.decision(Event::not_verified);
      // The hooks may have run for long, so check the node again.
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
  while (!context.activity.must_reload() && (context.now() < end || !context.node().ready)) {
    if (context.node().ready)
      co_await context.writer.show(
          reason::soaking,
          fmt::format("{}; the slot is released after the soak time, at {:%FT%TZ}", done,
                      std::chrono::floor<std::chrono::seconds>(record.deadline.value_or(context.wall()))));
    else
      co_await context.writer.show(reason::node_not_ready, done + ", but the node is not Ready, so it keeps its slot");
    co_await context.activity.wait(context.node().ready ? end : TimePoint::max());
  }
  const HookResult result = co_await hooks.pass(HookPoint::before_release, when_ended(context));
  co_return result.failed() ? result.decision(Event::hook_failed) : Decision{Event::soaked};
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
  // With this cause nothing can show that it is resolved, so only a person can end the state.
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
      if (node.well) co_return Decision{Event::healed};
      until = context.within(std::chrono::minutes(1));
    } else if (record.cause != reason::record_unreadable) {
      if (need.requested()) co_return Decision{Event::needed};
      if (need.pending().need == Need::no && !record.requested) co_return Decision{Event::not_needed};
      if (record.cause != reason::reboot_failed && need.pending().need == Need::yes) {
        const GateAnswer answer = co_await gates.ask(GateQuestion::When::before_turn);
        if (!answer.closed_with(Gate::Effect::degrades)) co_return Decision{Event::needed};
      }
      until = context.within(std::chrono::minutes(10));
    }
    co_await context.writer.show(record.cause, record.cause_message);
    co_await activity.wait(until);
  }
  co_return Decision{Event::healed};
}

}  // namespace haulout::agent
