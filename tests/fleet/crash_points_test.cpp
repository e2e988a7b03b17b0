// P7: killed at any request, before or after the server carried it out, the next agent goes on.
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;

struct Outcome {
  std::vector<std::string> violations;
  std::string story;
  std::size_t requests = 0;
  std::size_t boots = 0;
  std::string version, state;
  bool unschedulable = false;
  std::size_t slots = 0;
  bool excluded = false;  // from load balancers
};

class OneNode : public Fleet {
 public:
  void TestBody() override {}
  // With everything switched on that an update may pass through.
  Outcome full_update(CrashPoint crash) {
    options.lb_drain_wait = 1min;
    options.times.soak = 2min;
    plan_.hooks = {"before-drain/10-a", "after-drain/10-a", "after-boot/10-a", "before-release/10-a"};
    cluster.on_change([this](const sim::Change& change) {
      if (change.key.resource != "nodes" || change.key.name != "n1" || change.type == sim::ChangeType::deleted) return;
      const Json annotations = (*change.object)["metadata"].value("annotations", Json());
      const std::string ticket = annotations.is_object() ? annotations.value("haulout.dev/hook", "") : "";
      if (!ticket.empty())
        cluster.after(5s, [this, ticket] { annotate("hook-done.haulout.dev/after-drain.x", ticket); });
    });
    after(1s, [this] { annotate("hook.haulout.dev/after-drain.x", "limit=1h"); });
    Outcome outcome = update(crash);
    outcome.excluded = !label("n1", "node.kubernetes.io/exclude-from-external-load-balancers").empty();
    return outcome;
  }
  Outcome update(CrashPoint crash) {
    Machine& n1 = machine("n1", plan_);
    n1.crash_at(crash);
    machine("n2", {.target = ""});
    add(a_workload("Deployment", "web", 3, {{"terminationGracePeriodSeconds", 5}}));
    run_fleet(2h);
    return {violations,          story(),      n1.requests(), n1.boots(), n1.version(), state("n1"),
            unschedulable("n1"), slots_held(), false};
  }

 private:
  void annotate(const std::string& key, const std::string& value) {
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{key, value}}}}}});
  }

  MachinePlan plan_;
};

void expect_well(const Outcome& outcome, CrashPoint crash) {
  const std::string where = "killed " + std::string(crash.after ? "after" : "at") + " request " +
                            std::to_string(crash.request) + "\n" + outcome.story;
  EXPECT_THAT(outcome.violations, ::testing::IsEmpty()) << where;
  EXPECT_EQ(outcome.version, "1.1") << where;
  EXPECT_EQ(outcome.state, "idle") << where;
  EXPECT_FALSE(outcome.unschedulable) << where;
  EXPECT_EQ(outcome.boots, 1u) << where;
  EXPECT_EQ(outcome.slots, 0u) << where;
  EXPECT_FALSE(outcome.excluded) << where;
}

TEST(P7_CrashOnly, KilledAtEachRequestOfAnUpdate) {
  const std::size_t requests = OneNode().update({}).requests;
  EXPECT_GT(requests, 20u);
  for (std::size_t k = 1; k <= requests; ++k)
    for (const bool after : {false, true}) {
      const CrashPoint crash{k, after};
      expect_well(OneNode().update(crash), crash);
      if (::testing::Test::HasFailure()) return;
    }
}

// Every other request of the whole story, one after the other before and after the server has carried it out.
TEST(P7_CrashOnly, KilledAtRequestsOfAnUpdateWithHooksAndLoadBalancers) {
  const std::size_t requests = OneNode().full_update({}).requests;
  EXPECT_GT(requests, OneNode().update({}).requests + 4);
  for (std::size_t k = 1; k <= requests; k += 2) {
    const CrashPoint crash{k, k % 4 == 1};
    expect_well(OneNode().full_update(crash), crash);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace haulout::fleet
