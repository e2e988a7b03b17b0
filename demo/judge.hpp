// The judge of ./dev demo. Decides whether the promises of Haulout were kept while a fleet updated itself on the
// simulated cluster.
//
// The judge observes the objects that the API server stores, the requests to it, and machines that go down and come up.
// The labels in which agents report count only for the last promise, as a further condition. The judge records a
// violation as a sentence and does not stop the demo. In the names of this file, a turn is a slot: the permission of
// one node to be unavailable for its update, stored in a Lease. No I/O; nothing fails.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/call.hpp"
#include "sim/store.hpp"

namespace haulout::demo {

class DemoJudge {
 public:
  // Times in the sentences of the judge count from `began`.
  explicit DemoJudge(TimePoint began) : began_(began) {}

  // Observe a change of an object, or a request to the API server.
  void see(const sim::Change& change);
  void see(const sim::AuditEntry& entry);
  // Records that the machine went down, for any reason. `now` is the time at which this was detected.
  void machine_down(const std::string& node, TimePoint now);
  // Records that the machine has booted.
  void machine_up(const std::string& node);

  struct Promise {
    std::string text;                 // the promise: "at most one node is unavailable at a time"
    std::vector<std::string> broken;  // sentences that say how the promise was broken; empty if it was kept
    std::vector<std::string> seen;    // facts that show that the promise was kept
  };
  // Returns all promises and whether they have been kept so far. The last one, that every node is updated, counts as
  // broken until the update of every node is over.
  std::vector<Promise> verdict() const;
  // Returns true if every node is updated and available, and no Lease of a slot is left.
  bool over() const;

 private:
  struct NodeTruth {
    std::string uid, state, message;
    bool cordoned = false;
    bool ready = true;
    bool up = true;
    bool wants_reboot = true;  // false only if the label haulout.dev/reboot-required is "false"
    std::size_t boots = 0;
  };
  struct BudgetTruth {
    std::int64_t needed = 0;
    std::int64_t fewest = 0;
    bool met = false;  // true once the budget has had as many healthy pods as it needs
    bool broken = false;
  };

  void see_node(const sim::Change& change);
  void see_pod(const sim::Change& change);
  void see_budget(const sim::Change& change);
  void look_at_nodes(TimePoint now);
  void look_at_budgets(TimePoint now);
  std::int64_t healthy(const sim::Json& budget) const;
  bool holds_turn(const std::string& name, const NodeTruth& node) const;
  // Returns why the update of the node is not over; empty if it is over.
  std::string unfinished(const std::string& name, const NodeTruth& node) const;
  std::string when(TimePoint now) const;
  std::vector<std::string> budgets_seen() const;

  TimePoint began_;
  std::map<std::string, NodeTruth> nodes_;
  std::map<std::string, sim::Object> pods_;     // key: UID
  std::map<std::string, sim::Object> budgets_;  // key: namespace/name
  std::map<std::string, BudgetTruth> budget_truth_;
  std::map<std::string, std::string> turns_;  // holder of each Lease; key: namespace/name
  std::set<std::string> out_;                 // nodes that are cordoned or not Ready
  std::size_t most_out_ = 0;
  std::set<std::string> evicted_;  // UIDs of evicted pods
  std::size_t reboots_ = 0;
  std::vector<std::string> too_many_out_, budgets_broken_, bad_reboots_, deletions_;
};

// Returns a line for each promise, "kept" or "BROKEN", followed by lines with the facts that show it was kept, or that
// say how it was broken.
std::vector<std::string> verdict_lines(const std::vector<DemoJudge::Promise>& verdict);
bool all_kept(const std::vector<DemoJudge::Promise>& verdict);

}  // namespace haulout::demo
