#include "rehearse/timeline.hpp"

#include <gmock/gmock.h>

#include "rehearse/charts.hpp"

namespace haulout::rehearse {
namespace {

using namespace std::chrono_literals;
using drain::EventType;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class TimelineTest : public ::testing::Test {
 protected:
  void tell(EventType type, Duration at, const std::string& reason = {}, const std::string& message = {}) {
    pod.reason = reason;
    pod.message = message;
    const bool of_pod = type != EventType::planned && type != EventType::cordoned && type != EventType::finished;
    timeline.on_event({type,
                       begin + std::chrono::duration_cast<std::chrono::microseconds>(at),
                       node,
                       of_pod ? &pod : nullptr,
                       nullptr,
                       message,
                       {}});
  }

  WallTime begin{std::chrono::seconds(1'800'000'000)};
  std::string node = "n1";
  drain::PodReport pod = [] {
    drain::PodReport report;
    report.ns = "shop";
    report.name = "web-0";
    report.uid = "u";
    return report;
  }();
  Timeline timeline;
};

TEST_F(TimelineTest, APodThatSomebodyElseDeletesWaitsNoMore) {
  tell(EventType::parked, 2s, "BlockedByBudget", "by a");
  tell(EventType::terminating, 5s);
  tell(EventType::left, 65s, "TerminatingTooLong", "for longer than --skip-wait-for-delete-timeout");
  ASSERT_THAT(timeline.rows(), SizeIs(1));
  const Timeline::Row& row = timeline.rows()[0];
  EXPECT_EQ(waited(row, timeline.last()), 3s);
  EXPECT_EQ(*row.left - *row.leaving, 60s);
  EXPECT_FALSE(row.vanished);
}

TEST_F(TimelineTest, WaitsBeginAndEndWithTheirReason) {
  tell(EventType::planned, 0s);
  tell(EventType::cordoned, 1s);
  tell(EventType::parked, 2s, "BlockedByBudget", "by a");
  tell(EventType::parked, 4s, "BlockedByBudget", "by b");
  tell(EventType::parked, 5s, "BlockedByWebhook", "by c");
  tell(EventType::resumed, 7s);
  tell(EventType::eviction_sent, 7s);
  tell(EventType::evicted, 8s);
  tell(EventType::vanished, 12s);
  tell(EventType::finished, 13s, "", "drained");
  ASSERT_THAT(timeline.rows(), SizeIs(1));
  const Timeline::Row& row = timeline.rows()[0];
  ASSERT_THAT(row.waits, SizeIs(2));
  EXPECT_EQ(*row.waits[0].until - row.waits[0].from, 3s);
  EXPECT_EQ(row.waits[0].message, "by b") << "the last word on it";
  EXPECT_EQ(waited(row, timeline.last()), 5s);
  EXPECT_EQ(*row.vanished - *row.leaving, 4s);
  ASSERT_THAT(timeline.nodes(), SizeIs(1));
  EXPECT_EQ(timeline.nodes()[0].outcome, "drained");
}

TEST_F(TimelineTest, AThrottledSignalDoesNotEndTheWaitOfItsPod) {
  tell(EventType::parked, 2s, "BlockedByBudget", "by a");
  tell(EventType::signal_sent, 30s);
  tell(EventType::throttled, 31s);
  tell(EventType::vanished, 62s);
  ASSERT_THAT(timeline.rows(), SizeIs(1));
  EXPECT_EQ(waited(timeline.rows()[0], timeline.last()), 60s);
}

TEST_F(TimelineTest, AnOpenWaitLastsUntilNow) {
  tell(EventType::parked, 2s, "BlockedByBudget");
  tell(EventType::signal_sent, 3s, "BlockedByBudget");
  EXPECT_EQ(waited(timeline.rows()[0], begin + 10s), 8s);
}

TEST_F(TimelineTest, ThePictureIsOneFileWithoutForeignText) {
  pod.name = "<script>&\"";
  tell(EventType::planned, 0s);
  tell(EventType::parked, 1s, "BlockedByBudget", "by <b>");
  tell(EventType::evicted, 3s);
  tell(EventType::vanished, 5s);
  tell(EventType::finished, 5s, "", "drained");
  const std::string svg = timeline_svg(timeline, "Drain of n1");
  EXPECT_THAT(svg, AllOf(HasSubstr("<svg xmlns="), HasSubstr("</svg>\n"), HasSubstr("class=\"waits\""),
                         HasSubstr("shop/&lt;script&gt;&amp;&quot;"), HasSubstr("node/n1: drained")));
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("<b>")), Not(HasSubstr("http://www.w3.org/1999")),
                         Not(HasSubstr("href"))));
}

TEST_F(TimelineTest, WhatIsStuckIsNotHiddenByItsTerminating) {
  tell(EventType::evicted, 1s);
  tell(EventType::parked, 31s, "PodStuckTerminating", "held by its finalizers");
  tell(EventType::finished, 60s, "", "blocked");
  const std::string svg = timeline_svg(timeline, "Drain of n1");
  EXPECT_LT(svg.find("rect class=\"leaves\""), svg.find("rect class=\"waits\"")) << "what comes later is in front";
  EXPECT_THAT(svg, HasSubstr("shop/web-0 has been terminating for 59s, and still exists<"));
}

TEST_F(TimelineTest, APodThatIsLeftHasNotTerminated) {
  tell(EventType::terminating, 5s);
  tell(EventType::left, 20s, "TerminatingTooLong", "for longer than --skip-wait-for-delete-timeout");
  tell(EventType::finished, 45s, "", "drained");
  EXPECT_THAT(timeline_svg(timeline, "Drain of n1"),
              HasSubstr("shop/web-0 has been terminating for 40s, and still exists; the drain does not wait for it<"));
}

TEST_F(TimelineTest, AnEmptyOneIsAPicture) {
  EXPECT_THAT(timeline_svg(timeline, "Drain of n1"), HasSubstr("</svg>"));
}

TEST(TimelineFile, SaysWhatIsWrongBeforeAnythingIsDone) {
  const auto nowhere = can_write_timeline("/nonexistent/dir/t.svg");
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message(), AllOf(HasSubstr("/nonexistent/dir/t.svg"), HasSubstr("No such file")));
  EXPECT_FALSE(can_write_timeline(::testing::TempDir()));
}

TEST(TimelineFile, StandsWhole) {
  const std::string path = ::testing::TempDir() + "haulout-timeline.svg";
  ASSERT_TRUE(can_write_timeline(path));
  EXPECT_TRUE(write_timeline(path, Timeline(), "t"));
  EXPECT_EQ(std::remove(path.c_str()), 0);
  EXPECT_NE(std::remove((path + ".0.part").c_str()), 0);
}

}  // namespace
}  // namespace haulout::rehearse
