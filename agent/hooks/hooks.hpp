// The hooks of an update: the points at which they run, the hooks that another program answers by annotations of the
// Node (pure functions that never fail), and the hooks that are executables on the host (HookPrograms: may fail,
// cancellable). No result refers to an argument. Only ChildHooks borrows something: its clock.
#pragma once

#include <array>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/hosts/host_root.hpp"
#include "k8s/objects.hpp"
#include "retry/clock.hpp"

namespace haulout::agent {

// The four points of an update at which hooks run. Pure.
enum class HookPoint {
  before_drain,    // the node has its slot; nothing has been changed yet
  after_drain,     // the drain has ended; the state is not yet `ready`
  after_boot,      // the node has passed verification; it is not yet uncordoned
  before_release,  // the soak time has passed; the slot is not yet released
};
inline constexpr std::array all_hook_points{HookPoint::before_drain, HookPoint::after_drain, HookPoint::after_boot,
                                            HookPoint::before_release};

// Returns the name of the point in directories, annotations and HAULOUT_POINT, for example "before-drain".
inline std::string_view to_string(HookPoint point) {
  switch (point) {
    case HookPoint::before_drain: return "before-drain";
    case HookPoint::after_drain: return "after-drain";
    case HookPoint::after_boot: return "after-boot";
    case HookPoint::before_release: return "before-release";
  }
  std::terminate();
}
inline std::optional<HookPoint> hook_point_of(std::string_view name) {
  for (const HookPoint point : all_hook_points)
    if (to_string(point) == name) return point;
  return std::nullopt;
}
// Returns all names for messages: "before-drain, after-drain, …".
inline std::string_view hook_point_names() {
  return "before-drain, after-drain, after-boot, before-release";
}

// Hooks that another program answers by annotations of the Node. Pure.
//
// Registration, permanent, by the hook's owner:         hook.haulout.dev/<point>.<name>: [limit=DURATION][,failure=…]
// Question, by the agent while it waits at that point:  haulout.dev/hook: <ticket>
// Answer, by the hook's owner:                          hook-done.haulout.dev/<point>.<name>: <ticket>
//                                                  or   … <ticket> failed: <why>
// The ticket differs for each question, so an old answer never counts as a new one and needs no cleanup.
// The agent writes only the question.

inline constexpr std::string_view hook_prefix = "hook.haulout.dev/";
inline constexpr std::string_view hook_done_prefix = "hook-done.haulout.dev/";
inline constexpr std::string_view hook_annotation = "haulout.dev/hook";

// Rules for a hook whose annotation does not override them, and for every executable. Set by --hook-limit and
// --hook-failure.
struct HookRules {
  Duration limit = std::chrono::minutes(5);
  bool stop = true;  // if true, a hook that failed or exceeded its limit stops the update
};

// A hook that another program answers, as its annotation registers it.
struct AskedHook {
  std::string name;
  HookRules rules;
  std::string problem{};  // why a part of its annotation cannot be parsed; the common rules apply to that part
};

// Returns the hooks that are registered for the point, sorted by name.
std::vector<AskedHook> asked_hooks(const k8s::Node& node, HookPoint point, const HookRules& common);
// Returns one sentence for each annotation under `hook_prefix` that names no hook point, so that the agent would never
// ask it.
std::vector<std::string> misnamed_hooks(const k8s::Node& node);

// Returns "<point>@<time in UTC with microseconds>". `asked` is when the agent began to ask at this point.
std::string hook_ticket(HookPoint point, WallTime asked);

// What the answers on the Node mean so far.
struct AskedVerdict {
  std::string failed{};  // a sentence about the first hook that stops the update; empty if none does
  // "<point>.<name>" of each hook that has not answered and whose limit has not passed.
  std::vector<std::string> waiting{};
  std::vector<std::string> overlooked{};  // one sentence for each failure that does not stop the update
  std::optional<WallTime> look_again{};   // earliest time at which the limit of a waiting hook passes
};
// Compares the answers on the Node with the ticket of this question. The limit of each hook counts from `asked`.
AskedVerdict judge_answers(const std::vector<AskedHook>& hooks, const k8s::Node& node, HookPoint point, WallTime asked,
                           WallTime now);

// Hooks that are executables on the host: lists them, and declares the interface that runs them, with an implementation
// that does not need systemd. agent/dbus/unit_hooks.hpp runs them as units of systemd.

// The executables of a hook point.
struct HookFiles {
  std::vector<std::string> names{};  // executables to run, in this order
  // One sentence, with the reason, for each file that is not run. Contains none of the files that package managers and
  // editors leave behind, as in run-parts(8).
  std::vector<std::string> skipped{};
};

// Lists the executables of a hook point: <hooks-dir>/<point>/NAME beneath the host's root, sorted by name. Blocks the
// thread while it reads the file system. Returns no files if the directory does not exist. Fails with Errc::invalid if
// users other than root and the agent's own user may change the directory or a file: the error names the file and the
// remedy, and the caller then runs no hook of this point. Otherwise fails as HostRoot does.
Result<HookFiles> hook_files(const HostRoot& root, std::string_view hooks_dir, HookPoint point);

// Returns the path of one hook on the host.
std::string hook_path(std::string_view hooks_dir, HookPoint point, std::string_view name);

// Returns one sentence for each entry of the directory that belongs to no hook point and therefore never runs. Blocks,
// and fails, as HostRoot does.
Result<std::vector<std::string>> stray_hooks(const HostRoot& root, std::string_view hooks_dir);

// Variables (name, value) that a hook gets in addition to those of its parent.

using HookEnvironment = std::vector<std::pair<std::string, std::string>>;

// Interface to the executables of the hook points. Tests have fake implementations.
class HookPrograms {
 public:
  virtual ~HookPrograms() = default;
  // Lists the executables of the point. Fails as hook_files() does.
  virtual Result<HookFiles> list(HookPoint point) = 0;
  // Runs one hook until it ends, with the point's name as its argument. Errors name the file. Fails with Errc::timeout
  // if the hook is still running at the deadline; it is then ended. Fails with Errc::unavailable if it cannot be
  // started or fails; the message has the last line that it printed. Cancellable; the implementation decides whether
  // the hook then continues.
  virtual Task<> run(HookPoint point, std::string name, HookEnvironment environment, TimePoint deadline) = 0;
};

// Runs hook executables as child processes of the agent, for hosts without systemd. Cancelling run() kills the child.
class ChildHooks final : public HookPrograms {
 public:
  // Borrows the clock.
  ChildHooks(HostRoot root, Clock& clock, std::string hooks_dir)
      : root_(std::move(root)), clock_(clock), hooks_dir_(std::move(hooks_dir)) {}

  Result<HookFiles> list(HookPoint point) override { return hook_files(root_, hooks_dir_, point); }
  Task<> run(HookPoint point, std::string name, HookEnvironment environment, TimePoint deadline) override;

 private:
  HostRoot root_;
  Clock& clock_;
  std::string hooks_dir_;
};

}  // namespace haulout::agent
