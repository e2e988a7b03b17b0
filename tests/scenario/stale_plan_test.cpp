// Changes to volumes between the preflight, which makes the plan of the evictions, and the first eviction. In between,
// the drain works on other nodes or waits for load balancers to remove this one.
#include "tests/scenario/volumes_fixture.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::Outcome;
using drain::VolumeOutcome;
using ::testing::HasSubstr;

class StalePlan : public Volumes {
 protected:
  // A pod is created after the preflight and deleted before the first eviction. Its volume is detached 5 min after the
  // deletion.
  drain::Report drain_late(std::function<void()> before_eviction = [] {}) {
    std::optional<drain::Report> report;
    run(with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn(cluster.run());
      co_await clock.sleep_until(clock.now() + 5s);
      k8s::Client client(cluster.api(), clock, {k8s::FieldValidation::strict});
      drain::Drain drain(client, rng, told, options, "n1");
      EXPECT_TRUE(co_await drain.preflight());
      add(a_volume("data", {{"sim.haulout.dev/detaches-after", "5m"}}));
      add_pod_with("db-0", "data", {.grace = 1});
      co_await clock.sleep_until(clock.now() + 10s);
      EXPECT_TRUE(co_await drain.cordon());
      cluster.delete_gracefully("pods", "shop", "db-0");
      co_await clock.sleep_until(clock.now() + 20s);
      EXPECT_TRUE(cluster.get("pods", "shop", "db-0").is_null());
      before_eviction();
      co_await drain.evict();
      report = drain.report();
      group.cancel();
    }));
    return std::move(report).value();
  }
};

TEST_F(StalePlan, AVolumeWhosePodCameAndLeftMeanwhileIsWaitedFor) {
  const auto report = drain_late();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(attached_to("n1"), 0u);
  EXPECT_EQ(volume(report, "pv-data").outcome, VolumeOutcome::detached);
}

TEST_F(StalePlan, ALeakedVolumeIsStillReportedAsLeaked) {
  add(a_volume("old"));
  add(a_volume_attachment("pv-old"));
  const auto report = drain_late();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(volume(report, "pv-old").outcome, VolumeOutcome::leaked);
}

TEST_F(StalePlan, VolumeAttachmentsThatWereReadableAtFirstStayRequired) {
  const auto report = drain_late([this] { cluster.forbid("list", "volumeattachments"); });
  EXPECT_THAT(report, Ended(Outcome::failed));
  EXPECT_THAT(report.message, HasSubstr("volumes of node n1"));
  EXPECT_FALSE(unschedulable()) << "it ended: the cordon is taken back";
}

}  // namespace
}  // namespace haulout::scenario
