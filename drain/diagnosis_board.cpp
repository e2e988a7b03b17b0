#include <algorithm>

#include "drain/diagnoses.hpp"

namespace haulout::drain {

DiagnosisBoard::Changes DiagnosisBoard::update(const std::vector<DiagnosisFact>& facts, TimePoint now, WallTime wall) {
  Changes changes;
  std::map<std::pair<std::string, std::string>, const DiagnosisFact*> current;
  for (const DiagnosisFact& fact : facts) current.emplace(std::pair(fact.code, fact.subject), &fact);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (current.contains(entry->first)) {
      ++entry;
      continue;
    }
    if (entry->second.raised) changes.withdrawn.push_back(entry->second.diagnosis);
    entry = entries_.erase(entry);
  }
  for (const auto& [key, fact] : current) {
    auto [entry, inserted] = entries_.try_emplace(key);
    if (inserted) {
      entry->second.diagnosis = {fact->code, fact->subject, fact->message, wall, fact->scope};
      entry->second.due = now + fact->hold;
    }
    entry->second.diagnosis.message = fact->message;
    entry->second.diagnosis.scope = fact->scope;
    if (entry->second.raised || now < entry->second.due) continue;
    entry->second.raised = true;
    changes.raised.push_back(entry->second.diagnosis);
  }
  return changes;
}

TimePoint DiagnosisBoard::next_due(TimePoint now) const {
  TimePoint next = TimePoint::max();
  for (const auto& [key, entry] : entries_)
    if (!entry.raised && entry.due > now) next = std::min(next, entry.due);
  return next;
}

std::vector<Diagnosis> DiagnosisBoard::active() const {
  std::vector<Diagnosis> active;
  for (const auto& [key, entry] : entries_)
    if (entry.raised) active.push_back(entry.diagnosis);
  return active;
}

}  // namespace haulout::drain
