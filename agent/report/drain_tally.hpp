// Counts the pods that a running drain waits for, and its diagnoses, from its events. No I/O.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "drain/observer.hpp"

namespace haulout::agent {

class DrainTally {
 public:
  void see(const drain::Event& event);
  // Call it when the drain has ended.
  void clear();

  const drain::Progress& progress() const { return progress_; }
  std::map<std::string, std::size_t> waiting_by_reason() const;
  std::map<std::string, std::size_t> diagnoses_by_code() const;

 private:
  drain::Progress progress_;
  std::map<std::string, std::string> waiting_;  // waiting pods: UID to reason
  std::set<std::pair<std::string, std::string>> diagnoses_;
};

}  // namespace haulout::agent
