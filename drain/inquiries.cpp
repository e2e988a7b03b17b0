#include "drain/inquiries.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "drain/budget_diagnosis.hpp"
#include "drain/reasons.hpp"

namespace haulout::drain {

namespace {

constexpr Duration first_pause = std::chrono::seconds(30);
constexpr Duration longest_pause = std::chrono::minutes(2);

// True if the diagnosis of the budget depends on the state of the other pods that the budget selects.
bool members_matter(const BudgetBook& book, const std::string& uid, const k8s::Pod& held, WallTime server_now) {
  const auto budget = book.budgets().find(uid);
  if (!book.visible() || budget == book.budgets().end() || !budget->second.selector) return false;
  const auto fact = diagnose_budget({budget->second, {&held}, server_now});
  return fact && (fact->code == reason::budget_awaits_replacement || fact->code == reason::budget_unhealthy_deadlock);
}

// Maximum number of held pods whose volumes are looked up at a time. That many are enough to show the cause.
constexpr std::size_t most_volumes = 10;

struct Look {
  WallTime server_now;
  std::set<Inquiries::Question> wanted{};
  std::set<std::string_view> judged{};  // UIDs of budgets already examined; one budget may hold hundreds of pods
  std::size_t volumes = 0;
};

void add_questions(const TrackedPod& tracked, const BudgetBook& book, Look& look) {
  using Kind = Inquiries::Kind;
  if (!is_held(tracked)) return;
  if (!tracked.pod.claims.empty() && look.volumes++ < most_volumes)
    look.wanted.insert({Kind::local_volumes, tracked.pod.uid});
  if (tracked.refusal.verdict == EvictionVerdict::ns_terminating) look.wanted.insert({Kind::ns, tracked.pod.ns});
  if (const auto& webhook = tracked.refusal.webhook; webhook && !webhook->service.empty())
    look.wanted.insert({Kind::service, webhook->service});
  if (tracked.refusal.verdict != EvictionVerdict::budget || tracked.budgets->size() != 1) return;
  const std::string& uid = tracked.budgets->front();
  if (look.judged.insert(uid).second && members_matter(book, uid, tracked.pod, look.server_now))
    look.wanted.insert({Kind::members, uid});
}

}  // namespace

Duration Inquiries::asked_after(Kind kind) {
  return kind == Kind::ns ? std::chrono::seconds(290) : std::chrono::seconds(10);
}

void Inquiries::look(const Pipeline& pipeline, TimePoint now, WallTime server_now) {
  Look seen{server_now};
  for (const TrackedPod* tracked : pipeline.leaving()) add_questions(*tracked, pipeline.book(), seen);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (seen.wanted.contains(entry->first)) {
      ++entry;
      continue;
    }
    forget(entry->first);
    entry = entries_.erase(entry);
  }
  for (const Question& question : seen.wanted)
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
  // The node that a volume is bound to does not change, so that question is not repeated.
  const bool once = question.kind == Kind::local_volumes && !failed;
  entry->second.due = once ? TimePoint::max() : now + entry->second.pause;
  entry->second.pause = std::min(2 * entry->second.pause, longest_pause);
}

void Inquiries::forget(const Question& question) {
  switch (question.kind) {
    case Kind::members: known_.members.erase(question.id); break;
    case Kind::ns: known_.namespaces.erase(question.id); break;
    case Kind::local_volumes: known_.local_volumes.erase(question.id); break;
    case Kind::service: known_.services.erase(question.id); break;
  }
}

}  // namespace haulout::drain
