// Follows the pods and budgets of a simulated cluster while its fleet is updated. Borrows the cluster and the clock,
// which must outlive it. No I/O; nothing fails.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rehearse/courses.hpp"
#include "sim/cluster.hpp"

namespace haulout::rehearse {

class WorkloadWatch {
 public:
  WorkloadWatch(sim::Cluster& cluster, Clock& clock) : cluster_(cluster), clock_(clock) {}
  WorkloadWatch(const WorkloadWatch&) = delete;
  WorkloadWatch& operator=(const WorkloadWatch&) = delete;

  // Counts the pods and budgets as they are now, and follows them from now on. To be called once, when the cluster has
  // come to rest.
  void begin();
  // To be called when a drain has evicted the pod with this UID. Further calls for the same pod do not count.
  void evicted(const std::string& uid);
  // Return what has become of them until now, sorted by name.
  std::vector<OwnerCourse> owners() const;
  std::vector<BudgetCourse> budgets() const;

 private:
  struct Owner {
    OwnerCourse course;
    std::size_t ready = 0;  // Ready pods now
  };
  struct Pod {
    Owner* owner = nullptr;  // null: the pod is left out
    bool ready = false;
    bool was_evicted = false;
    bool was_without_room = false;        // at the begin: it does not count then
    std::optional<WallTime> waits_since;  // since when the scheduler finds no node for it; unset: it does not wait
  };
  void pod_changed(const sim::Json& pod, bool deleted);
  void budget_changed(const sim::Key& key, const sim::Json& budget);
  // Returns the owner of the pod; null if the pod is left out.
  Owner* owner_of(const sim::Json& pod);
  static void count_wait(OwnerCourse& course, const Pod& pod, WallTime until);

  sim::Cluster& cluster_;
  Clock& clock_;
  std::map<std::string, Owner> owners_;                    // by name
  std::unordered_map<std::string, Owner*> by_controller_;  // by the UID of the pod's own controller
  std::unordered_map<std::string, Pod> pods_;              // by UID
  std::map<std::string, BudgetCourse> budgets_;            // by name
};

}  // namespace haulout::rehearse
