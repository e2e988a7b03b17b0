// Fixture with a pipeline whose pod is refused, and the diagnoses that follow. No I/O.
#pragma once

#include <gmock/gmock.h>

#include "drain/diagnoses.hpp"
#include "tests/drain/builders.hpp"

namespace haulout::drain::testing {

class DiagnosesTest : public ::testing::Test {
 protected:
  SeededRng rng{1};
  TimePoint now{std::chrono::hours(1)};
  WallTime wall{std::chrono::hours(1)};
  Known known;
  NodeFacts node{.name = "n1", .expect_cordon = true};
  Pipeline pipeline{{},
                    rng,
                    [this](const k8s::Pod& seen) { return decide(seen, Policy(), {}, wall); },
                    [](EventType, const PodReport&) {},
                    [this] { return wall; }};
  k8s::Pod pod = a_pod("web-0");

  void budget(const k8s::PodDisruptionBudget& value) { pipeline.budget_changed(value.uid, &value, now); }
  void refuse(const Error& error) {
    pipeline.take_evictions(now);
    pipeline.answered(pod.uid, Result<>(error), now, wall);
  }
  std::vector<std::string> codes() const {
    std::vector<std::string> codes;
    for (const auto& fact : diagnose(pipeline, node, known)) codes.push_back(fact.code);
    return codes;
  }
  void begin() {
    pipeline.pod_changed(pod, now);
    pipeline.start(now);
  }
};

}  // namespace haulout::drain::testing
