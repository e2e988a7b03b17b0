// Hooks that another program answers by annotations of the Node. Pure.
//
// Registration, permanent, by the hook's owner:         hook.haulout.dev/<point>.<name>: [limit=DURATION][,failure=…]
// Question, by the agent while it waits at that point:  haulout.dev/hook: <ticket>
// Answer, by the hook's owner:                          hook-done.haulout.dev/<point>.<name>: <ticket>
//                                                  or   … <ticket> failed: <why>
// The ticket differs for each question, so an old answer never counts as a new one and needs no cleanup.
// The agent writes only the question.
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

// Rules for a hook whose annotation does not override them. Set by --hook-limit and --hook-failure.
struct HookRules {
  Duration limit = std::chrono::minutes(5);
  bool stop = true;  // if true, a hook that failed or exceeded its limit stops the update
};

struct AskedHook {
  std::string name;
  HookRules rules;
  std::string problem{};  // why a part of its annotation cannot be parsed; the common rules apply to that part
};

// Returns the hooks of the point, sorted by name.
std::vector<AskedHook> asked_hooks(const k8s::Node& node, HookPoint point, const HookRules& common);
// Returns one sentence for each annotation under `hook_prefix` that names no hook point, so that the agent would never
// ask it.
std::vector<std::string> misnamed_hooks(const k8s::Node& node);

std::string hook_ticket(HookPoint point, WallTime asked);

struct AskedVerdict {
  std::string failed{};                   // a sentence about the first hook that stops the update; empty if none does
  std::vector<std::string> waiting{};     // names of the hooks that have not answered and whose limit has not passed
  std::vector<std::string> overlooked{};  // one sentence for each failure that does not stop the update
  std::optional<WallTime> look_again{};   // earliest time at which the limit of a waiting hook passes
};
AskedVerdict judge_answers(const std::vector<AskedHook>& hooks, const k8s::Node& node, HookPoint point, WallTime asked,
                           WallTime now);

}  // namespace haulout::agent
