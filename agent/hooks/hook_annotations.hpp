// Hooks that are answered from elsewhere, by annotations of the Node. Pure.
//
// Registered for good, by whoever wants to be asked:   hook.haulout.dev/<point>.<name>: [limit=DURATION][,failure=…]
// Asked, by the agent, while it waits at that point:    haulout.dev/hook: <ticket>
// Answered:                                             hook-done.haulout.dev/<point>.<name>: <ticket>
//                                              or       … <ticket> failed: <why>
// The ticket is another one each time, so that an old answer is never taken for a new one, and nobody has to clean up.
// The agent writes none of the others' annotations.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/hooks/hook_point.hpp"
#include "k8s/objects.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

inline constexpr std::string_view hook_prefix = "hook.haulout.dev/";
inline constexpr std::string_view hook_done_prefix = "hook-done.haulout.dev/";
inline constexpr std::string_view hook_annotation = "haulout.dev/hook";

// What holds for each hook that says nothing else: --hook-limit and --hook-failure.
struct HookRules {
  Duration limit = std::chrono::minutes(5);
  bool stop = true;  // after a hook that failed or took too long
};

struct AskedHook {
  std::string name;
  HookRules rules;
  std::string problem{};  // what of its annotation cannot be read; the common rule holds then
};

// By name.
std::vector<AskedHook> asked_hooks(const k8s::Node& node, HookPoint point, const HookRules& common);
// One sentence for each annotation under hook_prefix that names no point, and so would never be asked.
std::vector<std::string> misnamed_hooks(const k8s::Node& node);

std::string hook_ticket(HookPoint point, WallTime asked);

struct AskedVerdict {
  std::string failed{};                   // a hook that stops the update: a sentence
  std::vector<std::string> waiting{};     // names of those without an answer, whose time is not over
  std::vector<std::string> overlooked{};  // a sentence for each failure that does not stop anything
  std::optional<WallTime> look_again{};   // when the time of the next one is over
};
AskedVerdict judge_answers(const std::vector<AskedHook>& hooks, const k8s::Node& node, HookPoint point, WallTime asked,
                           WallTime now);

}  // namespace haulout::agent
