#include "agent/lifecycle/permission.hpp"

#include <fmt/format.h>

#include "agent/gates/pause.hpp"
#include "agent/lifecycle/node_record.hpp"
#include "agent/node/node_cordon.hpp"
#include "drain/reasons.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

using When = GateQuestion::When;

// Delay after a change of the gates, so that a burst of changes counts as one. Also limits the rate of a source that
// reports changes too often.
constexpr Duration breath = std::chrono::milliseconds(200);

}  // namespace

GateWatch::GateWatch(asio::any_io_executor executor, const Context& context, const RebootNeed& need)
    : context_(context), need_(need), news_(std::move(executor)) {}

asio::awaitable<GateAnswer> GateWatch::ask(When when) {
  const bool requested = need_.requested();
  const Pending pending = need_.all();
  if (when != When::under_way && pending.need == Need::unknown && !requested)
    co_return GateAnswer{{{.name = "backend",
                           .verdict = Gate::Verdict::closed,
                           .reason = reason::backend_unknown,
                           .message = pending.problem}}};
  co_return co_await context_.parts.gates.ask({.node = context_.node(),
                                               .record = context_.record,
                                               .pending = pending,
                                               .requested = requested,
                                               .versions_are_shared = !need_.target(false).empty(),
                                               .when = when},
                                              context_.within(request_timeout));
}

std::optional<Decision> GateWatch::version_changed() const {
  const Record& record = context_.record;
  // A node that is ready installs nothing any more: its reboot leads to what is in place, whatever is offered since.
  const bool only_boots = record.state == State::ready || record.state == State::rebooting;
  const std::string now = need_.target(context_.options.stages_first || only_boots);
  if (!context_.options.ramp || record.installing || now.empty() || now == record.slot_version) return std::nullopt;
  return Decision{Event::gate_closed, reason::waiting_for_slot,
                  fmt::format("the update leads to version {} now, but the slot was taken for {}: the node gives it "
                              "back, and waits for one for {}",
                              now, record.slot_version.empty() ? "another update" : record.slot_version, now)};
}

Task<std::optional<Decision>> GateWatch::given_up() {
  if (auto changed = version_changed()) co_return changed;
  const GateAnswer answer = co_await ask(When::under_way);
  if (const Gate* closed = answer.closed_with(Gate::Effect::gives_up))
    co_return Decision{Event::gate_closed, closed->reason, closed->message};
  if (const Gate* unknown = answer.first_closed()) co_return Error(Errc::unavailable, unknown->message);
  co_return std::nullopt;
}

GateWatch::Asked GateWatch::asked_now() const {
  const k8s::Node& node = context_.node();
  Asked asked{.pending = need_.all(), .requested = need_.requested()};
  for (const auto& [key, value] : node.labels)
    if (std::find(status_labels.begin(), status_labels.end(), key) == status_labels.end())
      asked.words.emplace(key, value);
  for (const std::string_view key : {pause_annotation, request_annotation})
    if (const auto value = k8s::value_at(node.annotations, key)) asked.words.emplace(key, *value);
  if (const auto cordon = persons_cordon(node)) asked.words.emplace("cordon", words_of(*cordon));
  return asked;
}

asio::awaitable<void> GateWatch::wait(Asked asked, TimePoint until) {
  forget_change();
  co_await with_task_group([this, &asked, until](TaskGroup& group) {
    group.spawn(follow());
    return until_asked_anew(std::move(asked), until);
  });
}

asio::awaitable<void> GateWatch::until_asked_anew(Asked asked, TimePoint until) {
  Activity& activity = context_.activity;
  while (!activity.must_reload() && !changed_ && asked_now() == asked && context_.now() < until)
    co_await activity.wait(until);
}

asio::awaitable<void> GateWatch::follow() {
  for (;;) {
    co_await context_.parts.gates.changed();
    co_await context_.pause(breath);
    changed_ = true;
    news_.notify();
    context_.activity.wake();
  }
}

asio::awaitable<void> GateWatch::follow_pauses() {
  co_await with_task_group([this](TaskGroup& group) {
    group.spawn(follow());
    return give_up_when_paused();
  });
}

asio::awaitable<void> GateWatch::give_up_when_paused() {
  for (;;) {
    const Result<std::optional<Decision>> closed = co_await given_up();
    if (closed && *closed) co_return context_.activity.interrupt(**closed);
    // A gate that cannot be evaluated does not make the agent give the update up.
    co_await news_.wait_until(context_.clock, closed ? TimePoint::max() : context_.within(look_interval));
  }
}

asio::awaitable<void> OwnSlot::follow() {
  Backoff backoff(eager_patience);
  for (;;) {
    co_await context_.parts.slots.changed();
    Duration pause = std::chrono::milliseconds(200);
    auto turn = co_await context_.parts.slots.confirm(context_.within(request_timeout));
    if (turn && !turn->ours && !turn->uncertain) context_.activity.interrupt({Event::turn_lost});
    if (turn)
      backoff.reset();
    else
      pause = backoff.next(context_.rng, turn.error().retry_after);
    context_.activity.wake();
    co_await context_.pause(pause);
  }
}

asio::awaitable<void> OwnSlot::release() {
  Backoff backoff(patience);
  while (!context_.activity.must_reload()) {
    const std::string& slot = context_.record.slot;
    const std::string configured = context_.parts.slots.name();
    if (const auto keeper = keeper_of(slot); !keeper.empty() && keeper != configured) {
      co_await context_.writer.show(
          reason::cannot_release,
          fmt::format("the agent cannot release slot {}: it was taken with --slots={}, but --slots is {} now. Restart "
                      "the agent with --slots={} until the slot is released, or free the slot yourself and remove the "
                      "annotation {} of the Node",
                      slot, keeper, configured, keeper, record_annotation));
      co_await context_.activity.wait(TimePoint::max());
      continue;
    }
    auto released = co_await context_.parts.slots.release(context_.within(request_timeout));
    if (released) {
      context_.record.slot.clear();
      co_return;
    }
    co_await context_.writer.show(reason::cannot_release,
                                  "the slot cannot be released yet: " + released.error().message());
    co_await context_.pause(backoff.next(context_.rng, released.error().retry_after));
  }
}

}  // namespace haulout::agent
