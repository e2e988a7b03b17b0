// Fixture with a pipeline without I/O. The test provides all events and sets the time.
#pragma once

#include <gmock/gmock.h>

#include "drain/pipeline.hpp"
#include "tests/drain/builders.hpp"

namespace haulout::drain::testing {

class PipelineTest : public ::testing::Test {
 protected:
  SeededRng rng{1};
  TimePoint now{std::chrono::hours(1)};
  WallTime wall{std::chrono::hours(1)};
  Policy policy;
  std::vector<std::string> events;
  std::optional<Pipeline> pipeline;

  void make(PipelineOptions options = {}) {
    pipeline.emplace(
        options, rng, [this](const k8s::Pod& pod) { return decide(pod, policy, {}, wall); },
        [this](EventType type, const PodReport& pod) {
          events.push_back(std::string(to_string(type)) + " " + pod.name);
        },
        [this] { return wall; });
  }
  // Makes a pipeline that leaves a pod when its deletionTimestamp, the end of its grace period, is older than `after`.
  void make_impatient(Duration after) {
    policy.skip_terminating_after = after;
    PipelineOptions options;
    options.skips_overdue = true;
    make(options);
  }
  void plan(const std::vector<k8s::Pod>& pods) {
    for (const auto& pod : pods) pipeline->pod_changed(pod, now);
    pipeline->start(now);
  }
  std::vector<std::string> take() {
    std::vector<std::string> names;
    for (const auto& pod : pipeline->take_evictions(now)) names.push_back(pod.name);
    return names;
  }
  void accept(const k8s::Pod& pod) { pipeline->answered(pod.uid, Result<>(), now, wall); }
  void refuse(const k8s::Pod& pod, Error error) { pipeline->answered(pod.uid, Result<>(std::move(error)), now, wall); }
  void gone(const k8s::Pod& pod) { pipeline->pod_gone(pod.uid, now, wall); }
  // Takes all evictions that may be sent, accepts the one of `pod`, and deletes the pod.
  void take_and_lose(const k8s::Pod& pod) {
    take();
    accept(pod);
    gone(pod);
  }
  const TrackedPod& tracked(const k8s::Pod& pod) const { return pipeline->pods().at(pod.uid); }
  std::vector<k8s::Pod> pods_named(std::initializer_list<const char*> names) const {
    std::vector<k8s::Pod> pods;
    for (const char* name : names) pods.push_back(a_pod(name));
    return pods;
  }
};

inline const Error closed_budget = status_error(429, "TooManyRequests", "", "DisruptionBudget");

}  // namespace haulout::drain::testing
