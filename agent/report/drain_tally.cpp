#include "agent/report/drain_tally.hpp"

namespace haulout::agent {

void DrainTally::see(const drain::Event& event) {
  using enum drain::EventType;
  if (event.type == planned) clear();
  progress_ = event.progress;
  if (event.pod && event.type == parked) waiting_[event.pod->uid] = event.pod->reason;
  if (event.pod && (event.type == evicted || event.type == vanished || event.type == terminating || event.type == left))
    waiting_.erase(event.pod->uid);
  if (event.diagnosis && event.type == diagnosis_raised)
    diagnoses_.emplace(event.diagnosis->code, event.diagnosis->subject);
  if (event.diagnosis && event.type == diagnosis_withdrawn)
    diagnoses_.erase({event.diagnosis->code, event.diagnosis->subject});
}

void DrainTally::clear() {
  progress_ = {};
  waiting_.clear();
  diagnoses_.clear();
}

std::map<std::string, std::size_t> DrainTally::waiting_by_reason() const {
  std::map<std::string, std::size_t> counts;
  for (const auto& [uid, reason] : waiting_) ++counts[reason];
  return counts;
}

std::map<std::string, std::size_t> DrainTally::diagnoses_by_code() const {
  std::map<std::string, std::size_t> counts;
  for (const auto& [code, subject] : diagnoses_) ++counts[code];
  return counts;
}

}  // namespace haulout::agent
