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
};

class OneNode : public Fleet {
 public:
  void TestBody() override {}
  Outcome update(CrashPoint crash) {
    Machine& n1 = machine("n1");
    n1.crash_at(crash);
    machine("n2", {.target = ""});
    add(a_workload("Deployment", "web", 3, {{"terminationGracePeriodSeconds", 5}}));
    run_fleet(2h);
    return {checks.violations, story(),     n1.requests(),       n1.boots(),
            n1.version(),      state("n1"), unschedulable("n1"), slots_held()};
  }
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

}  // namespace
}  // namespace haulout::fleet
