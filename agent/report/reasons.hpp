// The table of reasons: why a node is where it is, or why a pod is not evicted, as the label haulout.dev/reason, the
// condition, Events, metrics and the log name it, with what it means and what a person can do. docs/reasons.md is made
// from it. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace haulout::agent {

// How a reason is to be taken.
enum class Concern {
  progress,  // things go on by themselves
  waiting,   // by somebody's wish: a window, a pause, a turn
  trouble,   // somebody should have a look: it may not end by itself
};

// "progress", "waiting" or "trouble".
std::string_view to_string(Concern concern);

struct Reason {
  std::string_view name;  // CamelCase, stable
  std::string_view group;
  Concern concern = Concern::progress;
  std::string_view meaning;
  std::string_view remedy;  // what to do; a sentence
};

std::span<const Reason> reasons();
// Nothing for one that is not in the table.
const Reason* find_reason(std::string_view name);
// A reason that nobody knows is trouble.
Concern concern_of(std::string_view reason);

// docs/reasons.md.
std::string reasons_page();

}  // namespace haulout::agent
