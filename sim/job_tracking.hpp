// What a pod of a Job cannot go without: the Job controller counts it when it has ended, and takes its finalizer
// `batch.kubernetes.io/job-tracking` off, be it that the Job is not there. Nothing else of Jobs is played.
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
