// Removes the finalizer `batch.kubernetes.io/job-tracking` from pods of Jobs, as the Job controller does when it has
// counted an ended pod. Without this controller, such a pod would never be deleted. It works even if the Job does not
// exist. The simulation has no other part of Jobs.
#pragma once

#include "sim/world.hpp"

namespace haulout::sim {

class JobTracking {
 public:
  explicit JobTracking(World& world);

 private:
  void let_go(const Key& pod, const std::string& uid);
  World& world_;
};

}  // namespace haulout::sim
