#include "agent/lifecycle/hooks.hpp"

#include <fmt/chrono.h>

#include "agent/lifecycle/node_record.hpp"
#include "agent/node/record.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// How often the agent runs the executables of a degraded node again.
constexpr Duration retry_interval = std::chrono::minutes(10);

std::string since(WallTime time) {
  return fmt::format("since {:%FT%TZ}", std::chrono::floor<std::chrono::seconds>(time));
}

std::string waiting_message(const AskedVerdict& verdict, const std::vector<AskedHook>& hooks, HookPoint point,
                            WallTime asked) {
  std::string message = fmt::format("waiting for hook {} {}", verdict.waiting.front(), since(asked));
  if (verdict.waiting.size() > 1)
    message += fmt::format(" (and {})", count_of(verdict.waiting.size() - 1, "more hook"));
  for (const AskedHook& hook : hooks)
    if (!hook.problem.empty())
      message += fmt::format("; a part of annotation {}{}.{} is ignored: {}", hook_prefix, to_string(point), hook.name,
                             hook.problem);
  return message;
}

}  // namespace

Decision HookResult::decision(Event event) const {
  return {event, reason::hook_failed, failure};
}

asio::awaitable<HookResult> Hooks::pass(HookPoint point, std::function<bool()> interrupted) {
  using Outcome = HookResult::Outcome;
  if (has_passed(context_.record, point)) co_return HookResult{Outcome::passed};
  std::string failure = co_await ask_others(point, interrupted);
  if (failure.empty() && !interrupted()) failure = co_await run_programs(point, interrupted);
  if (interrupted()) co_return HookResult{Outcome::interrupted};
  if (!failure.empty()) co_return HookResult{Outcome::failed, std::move(failure)};
  note_passed(point);
  co_return HookResult{Outcome::passed};
}

void Hooks::note_passed(HookPoint point) {
  context_.record.hooks_passed.emplace_back(to_string(point));
  context_.record.hooks_asked.reset();
}

void Hooks::note_asked() {
  if (!context_.record.hooks_asked) context_.record.hooks_asked = context_.wall();
}

asio::awaitable<std::string> Hooks::ask_others(HookPoint point, Interrupted interrupted) {
  const HookRules& rules = context_.options.hooks;
  if (point == HookPoint::before_drain) {
    for (const std::string& misnamed : misnamed_hooks(context_.node())) {
      if (rules.stop) co_return misnamed;
      context_.writer.warn(reason::hook_failed, misnamed);
    }
  }
  while (!interrupted()) {
    const auto hooks = asked_hooks(context_.node(), point, rules);
    if (hooks.empty()) break;
    note_asked();
    const WallTime asked = *context_.record.hooks_asked;
    const AskedVerdict verdict = judge_answers(hooks, context_.node(), point, asked, context_.wall());
    if (!verdict.failed.empty()) co_return verdict.failed;
    if (verdict.waiting.empty()) {
      for (const std::string& failure : verdict.overlooked) context_.writer.warn(reason::hook_failed, failure);
      break;
    }
    co_await context_.writer.show(reason::waiting_for_hook, waiting_message(verdict, hooks, point, asked));
    co_await context_.activity.wait(context_.at(verdict.look_again.value_or(context_.wall()), std::chrono::hours(24)));
  }
  co_return std::string();
}

asio::awaitable<std::string> Hooks::run_programs(HookPoint point, Interrupted interrupted) {
  HookPrograms* const programs = context_.parts.hooks;
  const HookRules& rules = context_.options.hooks;
  if (!programs) co_return std::string();
  const auto files = programs->list(point);
  if (!files && rules.stop) co_return files.error().message();
  if (!files) {
    context_.writer.warn(reason::hook_failed, files.error().message());
    co_return std::string();
  }
  for (const std::string& skipped : files->skipped) context_.writer.warn(reason::hook_skipped, skipped);
  for (const std::string& name : files->names) {
    if (interrupted()) break;
    if (context_.record.state != State::degraded)
      co_await context_.writer.show(reason::waiting_for_hook,
                                    fmt::format("hook {}/{} runs {}", to_string(point), name, since(context_.wall())));
    auto ended = co_await programs->run(point, name, hook_environment(context_.options.node, point, context_.record),
                                        context_.within(rules.limit));
    if (ended) continue;
    if (rules.stop) co_return ended.error().message();
    context_.writer.warn(reason::hook_failed, ended.error().message());
  }
  co_return std::string();
}

bool Hooks::all_answered(HookPoint point) const {
  const auto hooks = asked_hooks(context_.node(), point, context_.options.hooks);
  if (hooks.empty()) return true;
  if (!context_.record.hooks_asked) return false;
  const AskedVerdict verdict =
      judge_answers(hooks, context_.node(), point, *context_.record.hooks_asked, context_.wall());
  return verdict.failed.empty() && verdict.waiting.empty();
}

asio::awaitable<void> Hooks::until_healed() {
  Activity& activity = context_.activity;
  Record& record = context_.record;
  const HookPoint point = hook_point_at(record);
  const std::function<bool()> interrupted = [&activity] { return activity.ended(); };
  bool waited_for_answers = false;
  TimePoint next = context_.within(retry_interval);
  while (!activity.must_reload()) {
    if (!all_answered(point)) {
      note_asked();
      waited_for_answers = true;
    } else if (waited_for_answers || context_.now() >= next) {
      waited_for_answers = false;
      next = context_.within(retry_interval);
      std::string failure = co_await run_programs(point, interrupted);
      if (activity.must_reload()) break;
      if (failure.empty()) co_return note_passed(point);
      record.cause_message = std::move(failure);
    }
    co_await context_.writer.show(record.cause, record.cause_message);
    co_await activity.wait(waited_for_answers ? TimePoint::max() : next);
  }
}

}  // namespace haulout::agent
