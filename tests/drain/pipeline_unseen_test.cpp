// The drain may not read PodDisruptionBudgets. Only an eviction request shows whether a budget lets a pod leave.
#include "tests/drain/pipeline_fixture.hpp"

namespace haulout::drain {
namespace {
using namespace std::chrono_literals;
using testing::a_pod;
using ::testing::AllOf;
using testing::closed_budget;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using testing::owned_by;
using testing::PipelineTest;
using ::testing::SizeIs;

class UnseenBudgetsTest : public PipelineTest {
 protected:
  void begin(const std::vector<k8s::Pod>& pods) {
    make({.max_places = 0});
    pipeline->book().set_visible(false);
    plan(pods);
  }
  static std::vector<k8s::Pod> many(int count, const std::string& controller = "rs-uid") {
    std::vector<k8s::Pod> pods;
    pods.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
      pods.push_back(owned_by(a_pod(controller + "-" + std::to_string(i)), "apps/v1", "ReplicaSet", "web", controller));
    return pods;
  }
  // Returns the names of all pods requested within `span`. A budget refuses each request at once.
  std::vector<std::string> sent_in(Duration span) {
    std::vector<std::string> sent;
    for (const TimePoint end = now + span; now < end;) {
      const auto evictions = pipeline->take_evictions(now);
      for (const auto& pod : evictions) {
        sent.push_back(pod.name);
        refuse(pod, closed_budget);
      }
      if (evictions.empty()) now = std::min(end, pipeline->next_wake(now));
    }
    return sent;
  }
};

// The drain requests each pod once, and then one pod of each controller in turn. Without this rule, 200 pods caused 200
// requests every 15 to 30 s.
TEST_F(UnseenBudgetsTest, P10_EachPodIsAskedForOnceAndThenOneInTurnOfEachController) {
  begin(many(200));
  const auto first = sent_in(1s);
  EXPECT_THAT(first, SizeIs(200));
  EXPECT_THAT(std::set<std::string>(first.begin(), first.end()), SizeIs(200));
  sent_in(5min);
  const auto later = sent_in(1h);
  EXPECT_THAT(later, SizeIs(AllOf(Ge(59u), Le(121u)))) << "every 30 to 60 s";
  EXPECT_THAT(std::set<std::string>(later.begin(), later.end()), SizeIs(later.size())) << "in turn";
}

TEST_F(UnseenBudgetsTest, ABudgetThatOpensIsNoticedInTimeAndUsedByAll) {
  begin(many(3));
  sent_in(1h);
  std::vector<k8s::Pod> asked;
  const TimePoint opened = now;
  while (asked.empty()) {
    now = pipeline->next_wake(now);
    asked = pipeline->take_evictions(now);
  }
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_LE(now - opened, 60s);
  accept(asked[0]);
  now += 1s;
  EXPECT_THAT(take(), SizeIs(1)) << "one at a time, and at once";
}

TEST_F(UnseenBudgetsTest, P9_OfTwoControllersEachHasItsTurn) {
  auto pods = many(100, "a");
  for (const auto& pod : many(1, "b")) pods.push_back(pod);
  begin(pods);
  sent_in(5min);
  const auto sent = sent_in(1h);
  const auto of_b = std::count(sent.begin(), sent.end(), "b-0");
  EXPECT_GE(of_b, 59);
  EXPECT_LE(of_b, 121);
}

// The pod has become not Ready, and the server may exempt such a pod from its budget. So the drain requests this pod,
// and no other, within a second.
TEST_F(UnseenBudgetsTest, APodThatHasChangedIsAskedForAtOnce) {
  begin(many(2));
  sent_in(1h);
  auto pod = many(2)[1];
  pod.resource_version = "2";
  pod.ready = false;
  pipeline->pod_changed(pod, now);
  now += 1s;
  EXPECT_THAT(take(), ElementsAre("rs-uid-1"));
  EXPECT_THAT(take(), IsEmpty());
}

}  // namespace
}  // namespace haulout::drain
