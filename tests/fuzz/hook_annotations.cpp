#include "agent/hooks/hooks.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

// The first line is the name of a hook, the second the value of its annotation. The rest is the hook's answer.
static void one(std::string_view input) {
  const WallTime asked = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);
  const std::string name(take_line(input));
  k8s::Node node;
  node.annotations[std::string(agent::hook_prefix) + name] = std::string(take_line(input));
  node.annotations[std::string(agent::hook_done_prefix) + name] = std::string(input);
  std::ignore = agent::misnamed_hooks(node);
  for (const agent::HookPoint point : agent::all_hook_points) {
    const auto hooks = agent::asked_hooks(node, point, {});
    must(hooks.size() <= 1, "one annotation is one hook");
    const auto verdict = agent::judge_answers(hooks, node, point, asked, asked);
    must(verdict.waiting.empty() || verdict.look_again.has_value(), "who waits knows how long");
  }
}

static const Target target("hook_annotations", one);

}  // namespace haulout::fuzz
