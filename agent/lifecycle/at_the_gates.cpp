// The agent's use of the gates: it asks them, follows their changes, and gives an update up when a gate requires that.
#include "agent/gates/pause.hpp"
#include "agent/lifecycle/agent_impl.hpp"
#include "agent/node/node_cordon.hpp"
#include "drain/reasons.hpp"
#include "k8s/objects.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

using When = GateQuestion::When;

// Counts a burst of changes as one. Also limits the effect of a source that reports changes too often.
constexpr Duration breath = std::chrono::milliseconds(200);

}  // namespace

asio::awaitable<GateAnswer> Agent::Impl::ask_gates(When when) {
  const bool requested = reboot_requested(node_);
  if (when != When::under_way && pending_.need == Need::unknown && !requested)
    co_return GateAnswer{{{.name = "backend",
                           .verdict = Gate::Verdict::closed,
                           .reason = reason::backend_unknown,
                           .message = pending_.problem}}};
  co_return co_await parts_.gates.ask({node_, record_, pending_, requested, when}, within(request_timeout));
}

Agent::Impl::Asked Agent::Impl::asked_now() const {
  Asked asked{.pending = pending_};
  for (const auto& [key, value] : node_.labels)
    if (key != state_label && key != reason_label && key != reboot_required_label) asked.words.emplace(key, value);
  for (const std::string_view key : {pause_annotation, request_annotation})
    if (const auto value = k8s::value_at(node_.annotations, key)) asked.words.emplace(key, *value);
  if (const auto cordon = persons_cordon(node_)) asked.words.emplace("cordon", words_of(*cordon));
  return asked;
}

asio::awaitable<void> Agent::Impl::wait_at_gates(Asked asked, TimePoint until) {
  gates_moved_ = false;
  co_await with_task_group([this, &asked, until](TaskGroup& group) {
    group.spawn(follow_gates());
    return until_asked_anew(std::move(asked), until);
  });
}

asio::awaitable<void> Agent::Impl::until_asked_anew(Asked asked, TimePoint until) {
  while (!reload_ && !gates_moved_ && asked_now() == asked && now() < until) co_await wait(until);
}

asio::awaitable<void> Agent::Impl::follow_gates() {
  for (;;) {
    co_await parts_.gates.changed();
    co_await clock_.sleep_until(now() + breath);
    gates_moved_ = true;
    gates_news_->notify();
    changed_->notify();
  }
}

Task<bool> Agent::Impl::given_up() {
  const GateAnswer answer = co_await ask_gates(When::under_way);
  if (const Gate* closed = answer.closed_with(Gate::Effect::gives_up)) {
    cause_ = closed->reason;
    cause_message_ = closed->message;
    co_return true;
  }
  if (const Gate* unknown = answer.first_closed()) co_return Error(Errc::unavailable, unknown->message);
  co_return false;
}

asio::awaitable<void> Agent::Impl::follow_pauses() {
  co_await with_task_group([this](TaskGroup& group) {
    group.spawn(follow_gates());
    return give_up_when_paused();
  });
}

asio::awaitable<void> Agent::Impl::give_up_when_paused() {
  for (;;) {
    const Result<bool> closed = co_await given_up();
    if (closed && *closed) break;
    // If a gate cannot be evaluated, the agent does not give the update up.
    co_await gates_news_->wait_until(clock_, closed ? TimePoint::max() : within(look_interval));
  }
  decide(Event::gate_closed);
}

}  // namespace haulout::agent
