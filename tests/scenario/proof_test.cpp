// The final proof: when the drain's view contains no more pods, the drain asks the API server whether that is true.
#include "tests/scenario/scenario.hpp"
#include "tests/scenario/volumes_fixture.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using drain::PodOutcome;
using sim::FaultKind;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Proof : public Volumes {
 protected:
  Proof() { way = &faults; }
  // Applies the fault to every list of pods except the first one, which is for the preflight.
  void spoil_final_list(sim::Fault fault, Duration lasts = 24h) {
    faults.add(
        {.verb = "list", .resource = "pods", .skip = 1, .until = clock.now() + lasts, .fault = std::move(fault)});
  }
  std::string diagnosis(const drain::Report& report, const std::string& code) const {
    for (const auto& each : report.diagnoses)
      if (each.code == code) return each.message;
    return {};
  }
  sim::FaultTransport faults{cluster.api(), clock, world_rng};
};

// Promise P8: the token expires during the drain. The open watch continues, but the final list fails. The drain reports
// that it cannot list the pods.
TEST_F(Proof, AListThatFailsForLongIsTold) {
  options.timeout = 2min;
  add_pods(2, {.grace = 2});
  spoil_final_list({.kind = FaultKind::server_error, .code = 401});
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_THAT(report.message, HasSubstr("the pods of the node could not be listed"));
  EXPECT_THAT(report.message, HasSubstr("401"));
  EXPECT_THAT(diagnosis(report, "EmptinessUnproved"), HasSubstr("401"));
  EXPECT_EQ(told.count(EventType::disconnected), 1u) << "and the same is not told twice";
  EXPECT_LE(*told.time_of(EventType::disconnected, "") - *told.time_of(EventType::settling, ""), 20s);
}

TEST_F(Proof, AForbiddenListNamesTheRight) {
  options.timeout = 1min;
  add_pods(1, {.grace = 2});
  spoil_final_list({.kind = FaultKind::server_error, .code = 403});
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_THAT(report.message, HasSubstr("grant verb list on resource pods"));
}

TEST_F(Proof, ANodeThatCannotBeReadIsTold) {
  options.timeout = 1min;
  add_pods(1, {.grace = 2});
  after(1s, [this] {
    faults.add({.verb = "get", .resource = "nodes", .fault = {.kind = FaultKind::server_error, .code = 403}});
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_THAT(report.message, HasSubstr("the Node could not be read"));
  EXPECT_THAT(diagnosis(report, "EmptinessUnproved"), HasSubstr("grant verb get on resource nodes"));
}

TEST_F(Proof, WhatHealsIsWithdrawn) {
  add_pods(1, {.grace = 2});
  spoil_final_list({.kind = FaultKind::server_error, .code = 504}, 60s);
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_TRUE(told.raised("EmptinessUnproved"));
  EXPECT_EQ(told.count(EventType::disconnected), 1u);
  EXPECT_EQ(told.count(EventType::reconnected), 1u);
}

// A list that is still unanswered is diagnosed, too.
TEST_F(Proof, SilenceIsTold) {
  options.timeout = 50s;
  add_pods(1, {.grace = 2});
  spoil_final_list({FaultKind::stall});
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_TRUE(told.raised("EmptinessUnproved"));
  EXPECT_THAT(report.message, HasSubstr("has not answered"));
}

TEST_F(Proof, AProofThatSucceedsAtOnceIsNoNews) {
  add_pods(3, {.grace = 2});
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_FALSE(told.raised("EmptinessUnproved"));
  EXPECT_EQ(told.count(EventType::disconnected), 0u);
}

// Promise P9: the watch continues to deliver events while the list stalls.
TEST_F(Proof, ALatePodDoesNotWaitForAListThatStalls) {
  options.settle = 0s;
  faults.add({.verb = "list", .resource = "pods", .skip = 1, .count = 1, .fault = {FaultKind::stall}});
  after(2s, [this] { cluster.create("pods", a_pod("late", {.grace = 2})); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(pod(report, "late").outcome, PodOutcome::evicted);
  ASSERT_THAT(evictions(), SizeIs(1));
  EXPECT_LE(*told.time_of(EventType::eviction_sent, "shop/late") - *told.time_of(EventType::late_pod, "shop/late"), 1s);
}

// The pod is created while the final check waits for the answer about the Node. The last list does not contain the pod,
// but the drain must evict it.
TEST_F(Proof, WhatCameAfterTheLastListIsNotForgotten) {
  options.settle = 0s;
  faults.add(
      {.verb = "get", .resource = "nodes", .skip = 2, .count = 1, .fault = {.kind = FaultKind::slow, .delay = 5s}});
  after(3s, [this] { cluster.create("pods", a_pod("late", {.grace = 60})); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_THAT(faults.struck(), SizeIs(1));
  EXPECT_EQ(pod(report, "late").outcome, PodOutcome::evicted);
  EXPECT_THAT(pods_on("n1"), IsEmpty());
}

// Delays one answer about the Node.
class LateNode final : public http::Transport {
 public:
  LateNode(http::Transport& inner, Clock& clock) : inner_(inner), clock_(clock) {}
  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    const sim::Call call = sim::parse_call(request);
    Duration late{};
    if (call.verb == "get" && call.path == "/api/v1/nodes/n1") late = std::exchange(next_, {});
    auto answer = co_await inner_.round_trip(std::move(request), deadline);
    if (late > Duration::zero()) co_await clock_.sleep_until(clock_.now() + late);
    co_return answer;
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override {
    co_return co_await inner_.open(std::move(request), deadline);
  }
  void hold_the_next(Duration late) { next_ = late; }
  bool holds_the_next() const { return next_ > Duration::zero(); }

 private:
  http::Transport& inner_;
  Clock& clock_;
  Duration next_{};
};

// A late pod makes the drain read the Node. Before the answer "cordoned" arrives, a person uncordons the node and the
// watch delivers that event. The late answer must not count: no pod is evicted any more.
TEST_F(Proof, P3_ALateAnswerAboutTheNodeTakesNoNewsBack) {
  LateNode late(cluster.api(), clock);
  way = &late;
  options.max_concurrent = 1;
  options.timeout = 1min;
  add_pods(4, {.grace = 10});
  WallTime uncordoned;
  after(2s, [&late] { late.hold_the_next(5s); });
  after(3s, [this] { cluster.create("pods", a_pod("late", {.grace = 2})); });
  after(5s, [this, &uncordoned] {
    cluster.uncordon("n1");
    uncordoned = clock.wall_now();
  });
  EXPECT_THAT(drain(), Ended(Outcome::blocked));
  EXPECT_FALSE(late.holds_the_next());
  for (const auto& entry : told.entries)
    if (entry.type == EventType::eviction_sent) EXPECT_LE(entry.at, uncordoned);
}

// Without a live watch, the drain would not see pods that are created after the list.
TEST_F(Proof, NoNodeIsDrainedWithoutALivingWatch) {
  options.timeout = 1min;
  add_pods(1, {.grace = 2});
  faults.add({.verb = "watch", .resource = "pods", .skip = 1, .fault = {.kind = FaultKind::server_error, .code = 503}});
  after(4s, [this] { cluster.close_watches(); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_THAT(report.message, HasSubstr("cannot be watched"));
}

// A load balancer closes idle connections, and the drain opens its watches again at once. It reports no disconnection.
TEST_F(Proof, AWatchThatIsOpenedAgainAtOnceIsNoNews) {
  add_pods(2, {.grace = 120});
  for (int i = 1; i < 8; ++i) after(i * 15s, [this] { cluster.close_watches(); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
  EXPECT_EQ(told.count(EventType::disconnected), 0u);
  EXPECT_EQ(told.count(EventType::reconnected), 0u);
}

// With end_at_volume_limit, stuck volumes end the drain, but not while a pod is left.
TEST_F(Proof, ALatePodStopsTheEndByAStuckVolume) {
  options.volume_limit = 20s;
  options.end_at_volume_limit = true;
  add(a_volume("data", {{"sim.haulout.dev/detaches-after", "300s"}}));
  add_pod_with("db-0", "data", {.grace = 2});
  faults.add(
      {.verb = "list", .resource = "volumeattachments", .skip = 1, .fault = {.kind = FaultKind::slow, .delay = 10s}});
  after(25s, [this] { cluster.create("pods", a_pod("late", {.grace = 30})); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::blocked));
  EXPECT_EQ(pod(report, "late").outcome, PodOutcome::evicted) << "its end is waited for first";
}

}  // namespace
}  // namespace haulout::scenario
