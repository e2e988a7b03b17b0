// A drain with the credential of the node's kubelet, which the Node authorizer and NodeRestriction limit.
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using drain::PodOutcome;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class KubeletScenario : public Scenario {
 protected:
  KubeletScenario() {
    cluster.set_token("kubelet", sim::kubelet_of("n1"));
    way = &as_kubelet;
    options.review_access = false;
  }
  sim::TokenTransport as_kubelet{cluster.api(), "kubelet"};
};

// The credential may read neither the budget nor the VolumeAttachment. The drain uses the message of the budget's
// refusal instead.
TEST_F(KubeletScenario, S67_WithAKubeletsCredentialTheNodeIsDrained) {
  add_pods(4, {.grace = 5, .labels = {{"app", "web"}}});
  add(a_budget("web", {{"maxUnavailable", 0}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  add(a_volume("data"));
  add(a_pod("db-0", {.owner_kind = "StatefulSet", .spec = mounting({"data"})}));
  add(a_pod("elsewhere", {.node = "n2"}));
  std::string said;
  after(30s, [&] {
    for (const auto& entry : told.entries)
      if (entry.type == EventType::parked && entry.pod == "shop/web-0") said = entry.message;
    cluster.remove("poddisruptionbudgets", "shop", "web");
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  for (const auto& one : report.pods) EXPECT_EQ(one.outcome, PodOutcome::evicted) << one.name;
  EXPECT_THAT(said, HasSubstr("PodDisruptionBudget of namespace shop"));
  EXPECT_TRUE(told.raised("RightMissing")) << "volumes are not waited for, and that is said";
  for (const auto& entry : cluster.audit()) EXPECT_EQ(entry.user, "system:node:n1");
  EXPECT_THAT(pods_on("n2"), SizeIs(1));
}

// A pod was deleted before its eviction, or was replaced by a pod of the same name on another node. The eviction with a
// kubelet's credential gets 404 in the first case and 403 in the second. Both mean that the pod is deleted.
TEST_F(KubeletScenario, S67_A404AndA403AreUnderstoodAsGone) {
  options.max_concurrent = 1;
  add(a_pod("first", {.grace = 30}));
  add(a_pod("gone", {.grace = 1}));
  add(a_pod("moved", {.grace = 1}));
  // The watches do not report the deletions below before the drain sends the evictions.
  after(2s, [this] { cluster.silence_watches(); });
  after(3s, [this] {
    for (const char* name : {"gone", "moved"}) cluster.remove("pods", "shop", name);
    cluster.create("pods", a_pod("moved", {.node = "n2"}));
  });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  for (const char* name : {"gone", "moved"}) {
    EXPECT_EQ(pod(report, name).outcome, PodOutcome::gone) << name;
    EXPECT_EQ(told.count(EventType::diagnosis_raised, std::string("shop/") + name), 0u);
  }
  std::map<std::string, std::vector<int>> answers;
  for (const auto& entry : evictions()) answers[entry.name].push_back(entry.status);
  EXPECT_THAT(answers["gone"], ::testing::Each(404));
  EXPECT_THAT(answers["moved"], ::testing::Each(403));
  EXPECT_THAT(pods_on("n2"), SizeIs(1)) << "another pod of that name, on another node";
}

// The kubelet is dead, and taint eviction has already deleted some pods with their own grace period. A forced drain
// must remove these, too.
TEST_F(Scenario, AForcedDrainOfADeadNodeRemovesWhatTerminatesAlready) {
  options.grace_seconds = 0;
  add_pods(3, {.grace = 300});
  cluster.stop_kubelet("n1");
  for (const char* name : {"web-0", "web-1"}) cluster.delete_gracefully("pods", "shop", name, std::nullopt);
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_LT(took(), 10s);
  EXPECT_THAT(evictions(), SizeIs(3));
  EXPECT_EQ(pod(report, "web-0").outcome, PodOutcome::evicted);
}

TEST_F(Scenario, AShorterGracePeriodIsGivenToPodsThatAnEarlierDrainHasEvicted) {
  options.grace_seconds = 10;
  add(a_pod("slow", {.grace = 3600}));
  cluster.delete_gracefully("pods", "shop", "slow", std::nullopt);
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_LT(took(), 30s);
  ASSERT_THAT(evictions(), SizeIs(1));
  EXPECT_EQ(evictions()[0].grace_seconds, 10);
  EXPECT_EQ(pod(report, "slow").outcome, PodOutcome::evicted);
}

}  // namespace
}  // namespace haulout::scenario
