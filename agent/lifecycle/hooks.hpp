// The hook points of an update: first the agent asks the hooks that answer by annotation, then it runs the executables.
// An event does not stop a running executable; the agent handles the event afterwards. Cancellable. Borrows the
// context.
#pragma once

#include <functional>
#include <string>

#include "agent/lifecycle/context.hpp"

namespace haulout::agent {

struct HookResult {
  enum class Outcome { passed, failed, interrupted };
  Outcome outcome = Outcome::passed;
  std::string failure{};  // of which hook, and why, if `failed`
  bool failed() const { return outcome == Outcome::failed; }
  // The decision that follows from the failure.
  Decision decision(Event event) const;
};

class Hooks {
 public:
  explicit Hooks(const Context& context) : context_(context) {}

  // Returns when every hook of the point has passed (at once if there is none, or if they passed before), when a hook
  // has failed, or when `interrupted` returns true.
  boost::asio::awaitable<HookResult> pass(HookPoint point, std::function<bool()> interrupted);
  // For a node that is degraded because a hook failed: returns when the hooks of the point pass, or when the Node has
  // to be read again. Late answers count at once; the executables run again after each interval.
  boost::asio::awaitable<void> until_healed();

 private:
  using Interrupted = const std::function<bool()>&;
  // The next two return what failed, or an empty string if nothing stops the update.
  boost::asio::awaitable<std::string> ask_others(HookPoint point, Interrupted interrupted);
  boost::asio::awaitable<std::string> run_programs(HookPoint point, Interrupted interrupted);
  bool all_answered(HookPoint point) const;
  void note_passed(HookPoint point);
  void note_asked();

  const Context& context_;
};

}  // namespace haulout::agent
