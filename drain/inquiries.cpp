#include "drain/inquiries.hpp"

#include <algorithm>
#include <set>

#include "drain/budget_diagnosis.hpp"

namespace haulout::drain {

namespace {

constexpr Duration first_pause = std::chrono::seconds(30);
constexpr Duration longest_pause = std::chrono::minutes(2);

// Only where the other pods of the budget are what it waits for.
bool members_matter(const BudgetBook& book, const std::string& uid, const k8s::Pod& held) {
  const auto budget = book.budgets().find(uid);
  if (!book.visible() || budget == book.budgets().end() || !budget->second.selector) return false;
  const auto fact = diagnose_budget({budget->second, {&held}});
  return fact && (fact->code == "PDB_WAITING_REPLACEMENT" || fact->code == "PDB_UNHEALTHY_DEADLOCK");
}

void add_questions(const TrackedPod& tracked, const BudgetBook& book, std::set<Inquiries::Question>& wanted) {
  using Kind = Inquiries::Kind;
  if (!is_held(tracked)) return;
  if (!tracked.pod.claims.empty()) wanted.insert({Kind::local_volumes, tracked.pod.uid});
  if (tracked.last_verdict == EvictionVerdict::ns_terminating) wanted.insert({Kind::ns, tracked.pod.ns});
  if (tracked.last_verdict != EvictionVerdict::budget || tracked.budgets.size() != 1) return;
  Inquiries::Question members{Kind::members, tracked.budgets.front()};
  if (!wanted.contains(members) && members_matter(book, members.id, tracked.pod)) wanted.insert(std::move(members));
}

}  // namespace

Duration Inquiries::asked_after(Kind kind) {
  return kind == Kind::ns ? std::chrono::seconds(290) : std::chrono::seconds(10);
}

void Inquiries::look(const Pipeline& pipeline, TimePoint now) {
  std::set<Question> wanted;
  for (const auto& [uid, tracked] : pipeline.pods()) add_questions(tracked, pipeline.book(), wanted);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (wanted.contains(entry->first)) {
      ++entry;
      continue;
    }
    forget(entry->first);
    entry = entries_.erase(entry);
  }
  for (const Question& question : wanted)
    entries_.try_emplace(question, Entry{now + asked_after(question.kind), first_pause});
}

std::optional<Inquiries::Question> Inquiries::due(TimePoint now) const {
  for (const auto& [question, entry] : entries_)
    if (entry.due <= now && !given_up(question.kind)) return question;
  return std::nullopt;
}

TimePoint Inquiries::next_wake(TimePoint now) const {
  TimePoint next = TimePoint::max();
  for (const auto& [question, entry] : entries_)
    if (entry.due > now && !given_up(question.kind)) next = std::min(next, entry.due);
  return next;
}

void Inquiries::answered(const Question& question, bool failed, bool forbidden, TimePoint now) {
  unsigned& refusals = refusals_.at(static_cast<std::size_t>(question.kind));
  refusals = forbidden ? refusals + 1 : 0;
  const auto entry = entries_.find(question);
  if (entry == entries_.end()) {
    forget(question);
    return;
  }
  // What a volume is bound to does not change.
  const bool once = question.kind == Kind::local_volumes && !failed;
  entry->second.due = once ? TimePoint::max() : now + entry->second.pause;
  entry->second.pause = std::min(2 * entry->second.pause, longest_pause);
}

void Inquiries::forget(const Question& question) {
  switch (question.kind) {
    case Kind::members: known_.members.erase(question.id); break;
    case Kind::ns: known_.namespaces.erase(question.id); break;
    case Kind::local_volumes: known_.local_volumes.erase(question.id); break;
  }
}

}  // namespace haulout::drain
