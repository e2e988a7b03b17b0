// Runs an action at the end of a scope, whether the scope ends by a return, an exception or a cancellation. The action
// must not throw, and cannot be called off. The object needs a name: an unnamed one ends at once. It owns the action;
// what the action refers to must outlive the object.
#pragma once

#include <utility>

namespace haulout {

template <class Action>
class ScopeExit {
 public:
  explicit ScopeExit(Action action) : action_(std::move(action)) {}
  ScopeExit(const ScopeExit&) = delete;
  ScopeExit& operator=(const ScopeExit&) = delete;
  ~ScopeExit() { action_(); }

 private:
  Action action_;
};

}  // namespace haulout
