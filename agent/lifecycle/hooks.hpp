// Runs the hook points of an update: first the hooks that other programs answer by annotation, then the executables. An
// event does not stop a running executable; the agent handles the event afterwards. Cancellable. Borrows the context.
#pragma once

#include <functional>
#include <string>

#include "agent/lifecycle/context.hpp"

namespace haulout::agent {

// How a hook point ended.
struct HookResult {
  enum class Outcome { passed, failed, interrupted };
  Outcome outcome = Outcome::passed;
  std::string failure{};  // if `failed`: which hook, and why
  bool failed() const { return outcome == Outcome::failed; }
  // Returns the decision that ends the state because of the failure.
  Decision decision(Event event) const;
};

class Hooks {
 public:
  explicit Hooks(const Context& context) : context_(context) {}

  // Returns when every hook of the point has passed (at once if there is none, or if they passed before), when a hook
  // has failed, or when `interrupted` returns true. With --hook-failure continue, a hook that fails is reported as a
  // warning, and the point passes. While the agent waits for an answer, `interrupted` is asked again only after
  // Activity::wake(), so whatever makes it true must also wake the activity. An interrupted point has not passed; its
  // hooks run again.
  boost::asio::awaitable<HookResult> pass(HookPoint point, std::function<bool()> interrupted);
  // For a node that is degraded because a hook failed. Returns when the hooks of the point pass, or when the Node has
  // to be read again. A late answer by annotation counts at once. The executables run again after such an answer, and
  // at a fixed interval.
  boost::asio::awaitable<void> until_healed();

 private:
  using Interrupted = const std::function<bool()>&;
  // ask_others() and run_programs() return a message if a hook failed and the update must stop; otherwise an empty
  // string.
  boost::asio::awaitable<std::string> ask_others(HookPoint point, Interrupted interrupted);
  boost::asio::awaitable<std::string> run_programs(HookPoint point, Interrupted interrupted);
  bool all_answered(HookPoint point) const;
  void note_passed(HookPoint point);
  void note_asked();

  const Context& context_;
};

}  // namespace haulout::agent
