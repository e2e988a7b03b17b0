// The hook points: first the agent asks the hooks that answer by annotation, then it runs the executables. An event
// does not stop a running executable; the agent handles the event afterwards.
#include <fmt/chrono.h>

#include "agent/lifecycle/agent_impl.hpp"
#include "agent/node/hook_record.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

constexpr const char* failed_reason = reason::hook_failed;
constexpr const char* waiting_reason = reason::waiting_for_hook;
// How often the agent runs the executables of a degraded node again.
constexpr Duration retry_interval = std::chrono::minutes(10);

std::string since(WallTime time) {
  return fmt::format("since {:%FT%TZ}", std::chrono::floor<std::chrono::seconds>(time));
}

std::string waiting_message(const AskedVerdict& verdict, const std::vector<AskedHook>& hooks, WallTime asked) {
  std::string message = fmt::format("waiting for hook {} {}", verdict.waiting.front(), since(asked));
  if (verdict.waiting.size() > 1) message += fmt::format(" (and {} more)", verdict.waiting.size() - 1);
  for (const AskedHook& hook : hooks)
    if (!hook.problem.empty()) message += fmt::format("; annotation {}: {}", hook.name, hook.problem);
  return message;
}

}  // namespace

bool Agent::Impl::interrupted() {
  if (record_.state == State::draining)
    if (const auto event = drain_interrupted()) decided_ = event;
  return reload_ || (decided_ && *decided_ != Event::drained);
}

asio::awaitable<Agent::Impl::Hooks> Agent::Impl::pass_hooks(HookPoint point) {
  if (has_passed(record_, point)) co_return Hooks::passed;
  std::string failure = co_await ask_others(point);
  if (failure.empty() && !interrupted()) failure = co_await run_programs(point);
  if (interrupted()) co_return Hooks::interrupted;
  if (!failure.empty()) {
    cause_ = failed_reason;
    cause_message_ = std::move(failure);
    co_return Hooks::failed;
  }
  record_.hooks_passed.emplace_back(to_string(point));
  record_.hooks_asked.reset();
  co_return Hooks::passed;
}

asio::awaitable<std::string> Agent::Impl::ask_others(HookPoint point) {
  if (point == HookPoint::before_drain) {
    for (const std::string& misnamed : misnamed_hooks(node_)) {
      if (options_.hooks.stop) co_return misnamed;
      warn(failed_reason, misnamed);
    }
  }
  while (!interrupted()) {
    const auto hooks = asked_hooks(node_, point, options_.hooks);
    if (hooks.empty()) break;
    if (!record_.hooks_asked) record_.hooks_asked = wall();
    const AskedVerdict verdict = judge_answers(hooks, node_, point, *record_.hooks_asked, wall());
    if (!verdict.failed.empty()) co_return verdict.failed;
    if (verdict.waiting.empty()) {
      for (const std::string& failure : verdict.overlooked) warn(failed_reason, failure);
      break;
    }
    co_await show(waiting_reason, waiting_message(verdict, hooks, *record_.hooks_asked));
    co_await wait(at(verdict.look_again.value_or(wall()), std::chrono::hours(24)));
  }
  co_return std::string();
}

asio::awaitable<std::string> Agent::Impl::run_programs(HookPoint point) {
  if (!parts_.hooks) co_return std::string();
  const auto files = parts_.hooks->list(point);
  if (!files && options_.hooks.stop) co_return files.error().message();
  if (!files) {
    warn(failed_reason, files.error().message());
    co_return std::string();
  }
  for (const std::string& skipped : files->skipped) warn(reason::hook_skipped, skipped);
  for (const std::string& name : files->names) {
    if (interrupted()) break;
    if (record_.state != State::degraded)
      co_await show(waiting_reason, fmt::format("hook {}/{} runs {}", to_string(point), name, since(wall())));
    auto ended = co_await parts_.hooks->run(point, name, hook_environment(options_.node, point, record_),
                                            within(options_.hooks.limit));
    if (ended) continue;
    if (options_.hooks.stop) co_return ended.error().message();
    warn(failed_reason, ended.error().message());
  }
  co_return std::string();
}

// Returns from degradation when the failed hook passes. Late answers count at once; the executables run again after
// each interval.
asio::awaitable<Event> Agent::Impl::retry_hooks() {
  const HookPoint point = hook_point_at(record_);
  const auto answered = [&] {
    const auto hooks = asked_hooks(node_, point, options_.hooks);
    if (hooks.empty()) return true;
    if (!record_.hooks_asked) return false;
    const AskedVerdict verdict = judge_answers(hooks, node_, point, *record_.hooks_asked, wall());
    return verdict.failed.empty() && verdict.waiting.empty();
  };
  bool waited_for_answers = false;
  TimePoint next = now() + retry_interval;
  while (!reload_) {
    if (!answered()) {
      if (!record_.hooks_asked) record_.hooks_asked = wall();
      waited_for_answers = true;
    } else if (waited_for_answers || now() >= next) {
      waited_for_answers = false;
      next = now() + retry_interval;
      std::string failure = co_await run_programs(point);
      if (reload_) break;
      if (failure.empty()) {
        record_.hooks_passed.emplace_back(to_string(point));
        record_.hooks_asked.reset();
        co_return Event::healed;
      }
      record_.cause_message = std::move(failure);
    }
    co_await show(record_.cause, record_.cause_message);
    co_await wait(waited_for_answers ? TimePoint::max() : next);
  }
  co_return Event::healed;
}

}  // namespace haulout::agent
