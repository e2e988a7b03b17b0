#include "agent/hooks/hooks.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "agent/hooks/program_files.hpp"
#include "agent/hosts/host_command.hpp"
#include "base/duration.hpp"
#include "base/plain_text.hpp"

namespace haulout::agent {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// Parses one "key=value" into `rules`. Returns an error message, or an empty string on success.
std::string read_word(std::string_view word, HookRules& rules) {
  if (word.starts_with("limit=")) {
    const auto limit = parse_duration(word.substr(6));
    if (!limit) return limit.error().message();
    if (*limit <= Duration::zero()) return "limit must be longer than 0";
    rules.limit = *limit;
    return {};
  }
  if (word == "failure=stop" || word == "failure=continue") {
    rules.stop = word == "failure=stop";
    return {};
  }
  return fmt::format("\"{}\" is neither limit=DURATION nor failure=stop|continue", one_line(word));
}

AskedHook read_hook(std::string name, std::string_view value, const HookRules& common) {
  AskedHook hook{.name = std::move(name), .rules = common};
  for (bool more = !trimmed(value).empty(); more;) {
    const std::size_t end = value.find(',');
    const std::string wrong = read_word(trimmed(value.substr(0, end)), hook.rules);
    if (hook.problem.empty()) hook.problem = wrong;
    more = end != std::string_view::npos;
    if (more) value.remove_prefix(end + 1);
  }
  return hook;
}

std::string key_of(HookPoint point, std::string_view name) {
  return fmt::format("{}.{}", to_string(point), name);
}

struct Answer {
  bool given = false;
  std::string failure{};
};

Answer answer_of(const k8s::Node& node, const std::string& key, const std::string& ticket) {
  const auto found = node.annotations.find(std::string(hook_done_prefix) + key);
  if (found == node.annotations.end()) return {};
  std::string_view value = trimmed(found->second);
  if (!value.starts_with(ticket)) return {};
  value.remove_prefix(ticket.size());
  if (value.empty()) return {.given = true};
  if (!value.starts_with(' ')) return {};
  return {.given = true, .failure = one_line(trimmed(value))};
}

}  // namespace

std::vector<AskedHook> asked_hooks(const k8s::Node& node, HookPoint point, const HookRules& common) {
  const std::string prefix = fmt::format("{}{}.", hook_prefix, to_string(point));
  std::vector<AskedHook> hooks;
  for (auto entry = node.annotations.lower_bound(prefix);
       entry != node.annotations.end() && entry->first.starts_with(prefix); ++entry)
    hooks.push_back(read_hook(entry->first.substr(prefix.size()), entry->second, common));
  return hooks;
}

std::vector<std::string> misnamed_hooks(const k8s::Node& node) {
  std::vector<std::string> out;
  for (auto entry = node.annotations.lower_bound(std::string(hook_prefix));
       entry != node.annotations.end() && entry->first.starts_with(hook_prefix); ++entry) {
    const std::string key = entry->first.substr(hook_prefix.size());
    const std::size_t dot = key.find('.');
    if (dot != std::string::npos && dot + 1 < key.size() && hook_point_of(key.substr(0, dot))) continue;
    out.push_back(fmt::format("annotation {} must have the form {}POINT.NAME; POINT is one of {}", entry->first,
                              hook_prefix, hook_point_names()));
  }
  return out;
}

std::string hook_ticket(HookPoint point, WallTime asked) {
  const auto second = std::chrono::floor<std::chrono::seconds>(asked);
  return fmt::format("{}@{:%FT%T}.{:06}Z", to_string(point), second, (asked - second).count());
}

AskedVerdict judge_answers(const std::vector<AskedHook>& hooks, const k8s::Node& node, HookPoint point, WallTime asked,
                           WallTime now) {
  AskedVerdict verdict;
  for (const AskedHook& hook : hooks) {
    const std::string key = key_of(point, hook.name);
    const Answer answer = answer_of(node, key, hook_ticket(point, asked));
    const WallTime end = asked + std::chrono::duration_cast<WallTime::duration>(hook.rules.limit);
    std::string failure;
    if (answer.given) {
      if (!answer.failure.empty()) failure = fmt::format("hook {}: {}", key, answer.failure);
    } else if (now >= end) {
      failure = fmt::format(
          "hook {0} was not answered within {1}: its program did not set the annotation {2}{0}. Check that program, or "
          "remove the annotation {3}{0} to go on without this hook",
          key, format_duration(hook.rules.limit), hook_done_prefix, hook_prefix);
    } else {
      verdict.waiting.push_back(key);
      verdict.look_again = verdict.look_again ? std::min(*verdict.look_again, end) : end;
    }
    if (failure.empty()) continue;
    if (!hook.rules.stop)
      verdict.overlooked.push_back(std::move(failure));
    else if (verdict.failed.empty())
      verdict.failed = std::move(failure);
  }
  return verdict;
}

std::string hook_path(std::string_view hooks_dir, HookPoint point, std::string_view name) {
  return fmt::format("{}/{}/{}", hooks_dir, to_string(point), name);
}

Result<HookFiles> hook_files(const HostRoot& root, std::string_view hooks_dir, HookPoint point) {
  auto files = program_files(root, fmt::format("{}/{}", hooks_dir, to_string(point)),
                             {"a hook", "the agent runs no hooks of this point"});
  if (!files) return std::move(files).error();
  return HookFiles{std::move(files->names), std::move(files->skipped)};
}

Result<std::vector<std::string>> stray_hooks(const HostRoot& root, std::string_view hooks_dir) {
  auto names = root.list(hooks_dir);
  if (!names) return std::move(names).error();
  std::vector<std::string> out;
  for (const std::string& name : names->value_or(std::vector<std::string>()))
    if (!is_leftover_file(name) && !hook_point_of(name))
      out.push_back(fmt::format("{} belongs to no hook point, so it never runs: put hooks into the directories {}",
                                one_line(root.display(fmt::format("{}/{}", hooks_dir, name))), hook_point_names()));
  return out;
}

Task<> ChildHooks::run(HookPoint point, std::string name, HookEnvironment environment, TimePoint deadline) {
  const std::string path = hook_path(hooks_dir_, point, name);
  CO_TRY(std::string program, root_.locate(path));
  HostCommand command{.program = std::move(program), .args = {std::string(to_string(point))}};
  command.env = std::move(environment);
  auto outcome = co_await run_host_command(clock_, std::move(command), deadline);
  if (!outcome) co_return Error(outcome.error().code(), "hook " + outcome.error().message());
  if (outcome->exit_code == 0 && !outcome->too_much_output) co_return Result<>();
  std::string how = describe_end(*outcome);
  // Many scripts print the reason for a failure on stdout. So if stderr is empty, the last line of stdout is shown.
  if (const std::string last = last_line(outcome->output); outcome->error_tail.empty() && !last.empty())
    how += ": " + last;
  co_return Error(Errc::unavailable, fmt::format("hook {}: {}", path, how));
}

}  // namespace haulout::agent
