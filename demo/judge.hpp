// The judge of ./dev demo: did a fleet that updated itself on the simulated cluster keep what Haulout promises?
//
// It sees what the API server stores, what it was asked, and machines that go down and come up; what agents say of
// themselves counts only at the end, when it adds to the conditions. A violation is a sentence and stops nothing. Pure:
// it changes nothing and asks nobody.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/audit.hpp"
#include "sim/store.hpp"

namespace haulout::demo {

class DemoJudge {
 public:
  // Times in what it says count from here.
  explicit DemoJudge(TimePoint began) : began_(began) {}

  void see(const sim::Change& change);
  void see(const sim::AuditEntry& entry);
  // By whatever means; `now`: the moment at which it is noticed.
  void machine_down(const std::string& node, TimePoint now);
  // It has booted.
  void machine_up(const std::string& node);

  struct Promise {
    std::string text;                 // "no more than one node is out of service at a time"
    std::vector<std::string> broken;  // empty: kept
    std::vector<std::string> seen;    // what the judgement rests on
  };
  // As it stands now; the last promise is kept only when the update is over on every node.
  std::vector<Promise> verdict() const;
  // Every node has its update, is back in service, and no turn is held.
  bool over() const;

 private:
  struct NodeTruth {
    std::string uid, state, message;
    bool cordoned = false;
    bool ready = true;
    bool up = true;
    bool wants_reboot = true;  // by its label
    std::size_t boots = 0;
  };
  struct BudgetTruth {
    std::int64_t needed = 0;
    std::int64_t fewest = 0;
    bool met = false;  // it has been, since it came
    bool broken = false;
  };

  void see_node(const sim::Change& change);
  void see_pod(const sim::Change& change);
  void see_budget(const sim::Change& change);
  void look_at_nodes(TimePoint now);
  void look_at_budgets(TimePoint now);
  std::int64_t healthy(const sim::Json& budget) const;
  bool holds_turn(const std::string& name, const NodeTruth& node) const;
  // What keeps the update of that node from being over; empty: nothing.
  std::string unfinished(const std::string& name, const NodeTruth& node) const;
  std::string when(TimePoint now) const;
  std::vector<std::string> budgets_seen() const;

  TimePoint began_;
  std::map<std::string, NodeTruth> nodes_;
  std::map<std::string, sim::Object> pods_;     // by UID
  std::map<std::string, sim::Object> budgets_;  // by namespace/name
  std::map<std::string, BudgetTruth> budget_truth_;
  std::map<std::string, std::string> turns_;  // Lease: holder
  std::set<std::string> out_;                 // nodes that are out of service
  std::size_t most_out_ = 0;
  std::set<std::string> evicted_;  // UIDs
  std::size_t reboots_ = 0;
  std::vector<std::string> too_many_out_, budgets_broken_, bad_reboots_, deletions_;
};

// For each promise a line, "kept" or "BROKEN", and beneath it how it was broken, or else what was seen.
std::vector<std::string> verdict_lines(const std::vector<DemoJudge::Promise>& verdict);
bool all_kept(const std::vector<DemoJudge::Promise>& verdict);

}  // namespace haulout::demo
