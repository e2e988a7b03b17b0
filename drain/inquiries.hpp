// What is asked of the server about pods that have been held for a while, so that their diagnoses can say more. Pure
// bookkeeping: drain/inquire.cpp asks.
//
// A drain that nothing holds up asks nothing. A question is due when its subject has been held for a while, asked again
// ever more rarely while it stays held, and forgotten with its answer when it is not. What may not be read is not asked
// for again: the diagnosis is told without it.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <optional>
#include <string>

#include "drain/diagnoses.hpp"

namespace haulout::drain {

class Inquiries {
 public:
  enum class Kind { members, ns, local_volumes, service };
  struct Question {
    Kind kind;
    std::string id;  // UID of the budget, name of the namespace, UID of the pod, "ns/name"
    auto operator<=>(const Question&) const = default;
  };

  // Shorter than the hold of the diagnosis that it is for.
  static Duration asked_after(Kind kind);

  void look(const Pipeline& pipeline, TimePoint now, WallTime server_now);
  std::optional<Question> due(TimePoint now) const;
  // When the next question falls due, later than `now`; max() if none does.
  TimePoint next_wake(TimePoint now) const;
  // Not failed: the answer is in known().
  void answered(const Question& question, bool failed, bool forbidden, TimePoint now);

  // As long as a subject is held.
  bool asks(const Question& question) const { return entries_.contains(question); }
  Known& known() { return known_; }
  const Known& known() const { return known_; }

 private:
  struct Entry {
    TimePoint due;
    Duration pause;  // before it is asked again
  };
  bool given_up(Kind kind) const { return refusals_.at(static_cast<std::size_t>(kind)) >= 2; }
  void forget(const Question& question);

  std::map<Question, Entry> entries_;
  std::array<unsigned, 4> refusals_{};  // by kind, in a row
  Known known_;
};

}  // namespace haulout::drain
