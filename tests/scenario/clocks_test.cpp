// The wall clock of the drain's machine jumps, or is wrong from the start. Only the server's clock counts for the
// server's timestamps, and only monotonic time counts for waits.
#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::EventType;
using drain::Outcome;
using drain::PodOutcome;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OwnClock final : public Clock {
 public:
  explicit OwnClock(Clock& right) : right_(right) {}
  TimePoint now() const override { return right_.now(); }
  WallTime wall_now() const override { return right_.wall_now() + wrong_by; }
  std::unique_ptr<Alarm> set_alarm(boost::asio::any_io_executor executor, TimePoint when,
                                   std::function<void()> ring) override {
    return right_.set_alarm(std::move(executor), when, std::move(ring));
  }

  std::chrono::microseconds wrong_by{};

 private:
  Clock& right_;
};

class Clocks : public Scenario {
 protected:
  Clocks() { own_clock = &own; }

  // Between the jump and the end of the pod that another client deletes, the drain sends no request.
  void expect_no_notice_of(std::chrono::microseconds jump) {
    add_pods(2, {.grace = 250});
    add(a_pod("leaving", {.grace = 200, .labels = {{"app", "held"}}}));
    add(a_budget("held", {{"maxUnavailable", 0}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
    options.max_concurrent = 1;
    options.timeout = 10min;
    after(60s, [this, jump] { own.wrong_by = jump; });
    after(70s, [this] { cluster.delete_gracefully("pods", "shop", "leaving"); });
    const auto report = drain();
    EXPECT_THAT(report, Ended(Outcome::drained));
    EXPECT_FALSE(told.raised("PodStuckTerminating"));
    EXPECT_EQ(accepted_evictions(), 2u);
    EXPECT_GE(took(), 500s);
    EXPECT_LT(took(), 510s) << "one pod after the other";
  }

  OwnClock own{clock};
};

TEST_F(Clocks, S57_OneThatJumpsForwardChangesNothing) {
  expect_no_notice_of(1h);
}

TEST_F(Clocks, S57_OneThatJumpsBackChangesNothing) {
  expect_no_notice_of(-1h);
}

TEST_F(Clocks, S57_NothingIsLeftBehindBecauseAClockJumped) {
  add(a_pod("slow", {.grace = 600}));
  options.policy.skip_terminating_after = 60s;
  after(60s, [this] { own.wrong_by = 1h; });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  EXPECT_EQ(pod(report, "slow").outcome, PodOutcome::evicted);
  EXPECT_EQ(told.count(EventType::left), 0u);
  EXPECT_GE(took(), 600s);
}

TEST_F(Clocks, AWrongClockIsReportedUntilItIsSet) {
  own.wrong_by = -1h;
  add(a_pod("slow", {.grace = 600}));
  after(2min, [this] { own.wrong_by = {}; });
  after(4min, [this] { EXPECT_TRUE(told.withdrawn("ClockSkew")); });
  const auto report = drain();
  EXPECT_THAT(report, Ended(Outcome::drained));
  ASSERT_TRUE(told.raised("ClockSkew"));
  EXPECT_THAT(report.diagnoses, IsEmpty());
  for (const auto& entry : told.entries)
    if (entry.type == EventType::diagnosis_raised) EXPECT_THAT(entry.message, HasSubstr(" s behind the API server's"));
}

TEST_F(Clocks, OneThatGoesWrongInTheMiddleIsTold) {
  add(a_pod("slow", {.grace = 600}));
  after(2min, [this] { own.wrong_by = 1h; });
  after(4min, [this] { EXPECT_TRUE(told.raised("ClockSkew")); });
  EXPECT_THAT(drain(), Ended(Outcome::drained));
}

}  // namespace
}  // namespace haulout::scenario
