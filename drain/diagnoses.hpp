// "This will never succeed, because …; fix it with …": conditions under which waiting alone does not help, as data.
//
// diagnose() is pure and says what is true now. DiagnosisBoard turns that into raised and withdrawn diagnoses: each is
// raised once its test has held for its hold time (0 to 15 s, always within 30 s) and withdrawn when the test fails.
// They never stop the retries.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drain/pipeline.hpp"
#include "drain/report.hpp"

namespace haulout::drain {

// What diagnose() looks at besides the pipeline.
struct NodeFacts {
  std::string name;
  bool gone = false;
  bool expect_cordon = false;  // the cordon was acknowledged
  bool unschedulable = true;
  std::string unschedulable_manager{};
  std::optional<Error> pods_error{};  // why the view of pods is not live
};

struct DiagnosisFact {
  std::string code;
  std::string subject;
  std::string message;
  Duration hold{};  // must have been true this long
};

std::vector<DiagnosisFact> diagnose(const Pipeline& pipeline, const NodeFacts& node);

class DiagnosisBoard {
 public:
  struct Changes {
    std::vector<Diagnosis> raised;
    std::vector<Diagnosis> withdrawn;
  };
  Changes update(const std::vector<DiagnosisFact>& facts, TimePoint now, WallTime wall);
  // When a fact that holds now will have held long enough; max() if none is pending.
  TimePoint next_due(TimePoint now) const;
  std::vector<Diagnosis> active() const;

 private:
  struct Entry {
    Diagnosis diagnosis;
    TimePoint due;
    bool raised = false;
  };
  std::map<std::pair<std::string, std::string>, Entry> entries_;  // by code and subject
};

}  // namespace haulout::drain
