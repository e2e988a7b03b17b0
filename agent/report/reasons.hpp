// The table of reasons: why a node does not go on, or why a pod is not evicted. Each row has the meaning and what a
// person can do. The label haulout.dev/reason, the condition, Events, metrics and the log use these names.
// docs/reasons.md is generated from the table. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace haulout::agent {

// How much a reason needs the attention of a person.
enum class Concern {
  progress,  // continues without a person
  waiting,   // waits as configured or requested: a window, a pause, a slot
  trouble,   // may not end without a person
};

// "progress", "waiting" or "trouble".
std::string_view to_string(Concern concern);

struct Reason {
  std::string_view name;  // CamelCase; does not change between versions
  std::string_view group;
  Concern concern = Concern::progress;
  std::string_view meaning;
  std::string_view remedy;  // what a person can do; a sentence
};

std::span<const Reason> reasons();
// Returns null if the reason is not in the table.
const Reason* find_reason(std::string_view name);
// Returns `trouble` for a reason that is not in the table.
Concern concern_of(std::string_view reason);

// Returns the text of docs/reasons.md.
std::string reasons_page();

}  // namespace haulout::agent
