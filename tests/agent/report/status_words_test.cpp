#include "agent/report/status_words.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

const Status evicting{State::draining, "Evicting", "1 of 9 pods have gone", WallTime(5s)};

TEST(StatusWordsTest, HowFarADrainIsIsNoEvent) {
  Status later = evicting;
  later.message = "2 of 9 pods have gone";
  EXPECT_EQ(event_of(evicting, later), std::nullopt);
  EXPECT_EQ(log_entry_of(evicting, later).severity, Severity::debug);
  later.reason = "PodStuckTerminating";
  EXPECT_TRUE(event_of(evicting, later));
  EXPECT_EQ(log_entry_of(evicting, later).severity, Severity::warning);
}

TEST(StatusWordsTest, ATransitionNamesWhereItCameFrom) {
  const Status ready{State::ready, "", "", WallTime(9s)};
  EXPECT_THAT(log_entry_of(evicting, ready).fields, Contains(Pair("from", "draining")));
  EXPECT_EQ(event_of(evicting, ready)->reason, "Ready");
}

TEST(StatusWordsTest, TheFirstStatusIsNewsInTheLog) {
  EXPECT_EQ(log_entry_of(std::nullopt, evicting).severity, Severity::notice);
}

// A status without a message gets the text of its state. For `uncordoning`, that text says that the agent uncordons the
// node. If the cordon of a person stays, the status has a message that says so, and the message replaces the text.
TEST(StatusWordsTest, AVerifiedNodeSpeaksOfTheCordonThatItHas) {
  const Status verifying{State::verifying, "", "", WallTime(5s)};
  Status verified{State::uncordoning, "", "", WallTime(9s)};
  EXPECT_EQ(line_of(verified), "uncordoning: verification passed; the agent uncordons the node");
  EXPECT_EQ(event_of(verifying, verified)->note, "verification passed; the agent uncordons the node");
  verified.message = "verification passed; the node stays cordoned by jane@laptop";
  EXPECT_EQ(line_of(verified), "uncordoning: verification passed; the node stays cordoned by jane@laptop");
  EXPECT_EQ(event_of(verifying, verified)->note, verified.message);
}

class DrainWordsTest : public ::testing::Test {
 protected:
  drain::Event event(drain::EventType type) const {
    return {.type = type, .at = {}, .node = node, .pod = &pod, .diagnosis = &diagnosis, .message = "m", .progress = {}};
  }
  static drain::PodReport a_pod() {
    drain::PodReport report;
    report.ns = "shop";
    report.name = "web-0";
    report.uid = "u";
    report.controller = "StatefulSet/web";
    report.reason = "BlockedByBudget";
    report.message = "blocked by PodDisruptionBudget shop/web";
    return report;
  }

  std::string node = "n1";
  drain::PodReport pod = a_pod();
  drain::Diagnosis diagnosis{"BudgetNeverAllows", "PodDisruptionBudget shop/web", "it never allows a disruption", {}};
};

TEST_F(DrainWordsTest, APodThatWaitsIsOneLineWithItsReason) {
  const auto entry = log_entry_of(event(drain::EventType::parked));
  ASSERT_TRUE(entry);
  EXPECT_THAT(entry->message, HasSubstr("pod shop/web-0 waits: blocked by PodDisruptionBudget shop/web"));
  EXPECT_THAT(entry->fields, Contains(Pair("reason", "BlockedByBudget")));
  EXPECT_EQ(event_of(event(drain::EventType::parked)), std::nullopt) << "the status has that";
}

TEST_F(DrainWordsTest, WhoWaitsIsNotToldToWaitTwice) {
  pod.message = "waiting until a replacement is Ready";
  const auto entry = log_entry_of(event(drain::EventType::parked));
  ASSERT_TRUE(entry);
  EXPECT_THAT(entry->message, HasSubstr("pod shop/web-0 is waiting until a replacement is Ready"));
}

TEST_F(DrainWordsTest, ADiagnosisIsAWarning) {
  const auto note = event_of(event(drain::EventType::diagnosis_raised));
  ASSERT_TRUE(note);
  EXPECT_EQ(note->type, k8s::NodeEvent::Type::warning);
  EXPECT_EQ(note->reason, "BudgetNeverAllows");
  EXPECT_EQ(note->note, "PodDisruptionBudget shop/web: it never allows a disruption");
  EXPECT_EQ(log_entry_of(event(drain::EventType::diagnosis_raised))->severity, Severity::warning);
}

TEST_F(DrainWordsTest, APodThatNothingBringsBackIsAWarning) {
  pod.reason.clear();
  EXPECT_EQ(event_of(event(drain::EventType::evicted)), std::nullopt);
  pod.controller.clear();
  EXPECT_EQ(event_of(event(drain::EventType::eviction_sent)), std::nullopt);
  const auto note = event_of(event(drain::EventType::evicted));
  ASSERT_TRUE(note);
  EXPECT_EQ(note->type, k8s::NodeEvent::Type::warning);
  EXPECT_THAT(note->note, HasSubstr("shop/web-0"));
  EXPECT_EQ(log_entry_of(event(drain::EventType::evicted))->severity, Severity::warning);
  pod.reason = "Finished";
  EXPECT_EQ(event_of(event(drain::EventType::evicted)), std::nullopt) << "nothing of it ran";
}

TEST_F(DrainWordsTest, NoEventOfADrainIsTooMuchForTheWords) {
  for (int type = 0; type <= static_cast<int>(drain::EventType::finished); ++type) {
    drain::Event bare{
        .type = static_cast<drain::EventType>(type), .at = {}, .node = node, .message = "m", .progress = {}};
    EXPECT_EQ(event_of(bare), std::nullopt);
    if (const auto entry = log_entry_of(bare)) EXPECT_FALSE(entry->message.empty());
  }
}

}  // namespace
}  // namespace haulout::agent
