// The pipeline with a guard of controllers: which pod is evicted next when an eviction fails, when its answer is lost,
// or when the waiting pod changes.
#include "drain/controller_guard.hpp"
#include "tests/drain/pipeline_fixture.hpp"

namespace haulout::drain::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PipelineGuardsTest : public PipelineTest {
 protected:
  // Two pods of one controller, of which one at a time may leave. The eviction of `a` is in flight, and `b` waits.
  void SetUp() override {
    Guards guards;
    guards.max_unavailable = Share{1, false};
    guard.emplace(guards, book.emplace());
    Controller controller;
    controller.ns = "shop";
    controller.kind = "Deployment";
    controller.name = "web";
    controller.uid = "deployment-uid";
    controller.replicas = 2;
    book->learned("rs-uid", controller, now);
    for (const auto& pod : {a, b}) book->pod_changed(pod.uid, &pod, now, wall);
    book->namespace_seen("shop");
    PipelineOptions options;
    options.guards = {&*guard};
    make(options);
    plan({a, b});
    ASSERT_THAT(take(), ElementsAre("a"));
    ASSERT_EQ(tracked(b).report.reason, "BlockedByControllerBudget");
  }
  const k8s::Pod a = a_pod("a");
  const k8s::Pod b = a_pod("b");
  std::optional<ControllerBook> book;
  std::optional<ControllerGuard> guard;
};

TEST_F(PipelineGuardsTest, ARefusedPodLetsItsSiblingGoAtOnce) {
  refuse(a, status_error(500, "InternalError", "", ""));
  EXPECT_THAT(take(), ElementsAre("b"));
}

TEST_F(PipelineGuardsTest, APodWhoseAnswerWasLostMayHaveLeft) {
  refuse(a, Error(Errc::timeout, "no answer"));
  EXPECT_THAT(take(), IsEmpty());
  now += 1min;
  EXPECT_THAT(take(), ElementsAre("a")) << "it takes nothing more";
  refuse(a, status_error(500, "InternalError", "", ""));
  EXPECT_THAT(take(), ElementsAre("b"));
}

// A guard that holds a pod, and notes which pods leave.
struct HoldsOne final : EvictionGuard {
  std::optional<Hold> held(const k8s::Pod& pod, TimePoint) override {
    return pod.name == name ? std::optional(Hold{"AwaitingReplacement", "held", TimePoint::max()}) : std::nullopt;
  }
  void leaving(const k8s::Pod& pod, Leaves leaves) override { told[pod.name] = leaves; }
  std::string name;
  std::map<std::string, Leaves> told;
};

// Otherwise a guard that counts the pod as leaving would hold another pod for ever.
TEST_F(PipelineGuardsTest, APodThatIsHeldAfterALostAnswerCountsAsLeavingOnlyForATime) {
  using Leaves = EvictionGuard::Leaves;
  HoldsOne holds;
  PipelineOptions options;
  options.guards = {&holds};
  make(options);
  plan({a});
  ASSERT_THAT(take(), ElementsAre("a"));
  refuse(a, Error(Errc::timeout, "no answer"));
  holds.name = "a";
  now += 1min;
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(holds.told["a"], Leaves::perhaps);
  now += 2min;
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(holds.told["a"], Leaves::no);
}

TEST_F(PipelineGuardsTest, APodThatIsHeldIsLookedAtAgainWhenItChanges) {
  k8s::Pod failing = b;
  failing.ready = false;
  failing.resource_version += "0";
  pipeline->pod_changed(failing, now);
  EXPECT_THAT(take(), ElementsAre("b")) << "it takes nothing from those that are Ready";
}

}  // namespace
}  // namespace haulout::drain::testing
