#include "drain/volume_claims.hpp"

#include <gtest/gtest.h>

#include "drain/volumes.hpp"

namespace haulout::drain {
namespace {

using namespace std::chrono_literals;

class VolumeQuestionsTest : public ::testing::Test {
 protected:
  void fail(const std::string& volume, std::optional<std::chrono::milliseconds> retry_after = std::nullopt) {
    Error error(Errc::timeout, "no answer about " + volume);
    error.retry_after = retry_after;
    questions.failed(volume, error, false, now, rng);
  }
  SeededRng rng{1};
  TimePoint now{1h};
  VolumeQuestions questions;
};

TEST_F(VolumeQuestionsTest, EachHasItsTurnAndTheOneThatFailsBacksOff) {
  questions.want({"a", "b", "c"});
  EXPECT_EQ(questions.due(now), "a");
  fail("a");
  EXPECT_EQ(questions.due(now), std::nullopt) << "no question follows a failure at once";
  EXPECT_LE(questions.next_due(), now + 100ms);
  now = questions.next_due();
  EXPECT_EQ(questions.due(now), "b");
  questions.answered("b");
  EXPECT_EQ(questions.due(now), "c");
  questions.answered("c");
  EXPECT_EQ(questions.due(now), std::nullopt);
  EXPECT_GE(questions.next_due(), TimePoint(1h) + 500ms);
  EXPECT_EQ(questions.due(questions.next_due()), "a");
}

TEST_F(VolumeQuestionsTest, WhatComesLaterIsAskedForBeforeWhatHasFailed) {
  questions.want({"a"});
  fail("a");
  now += 10min;
  questions.want({"a", "b"});
  EXPECT_EQ(questions.due(now), "b");
}

TEST_F(VolumeQuestionsTest, WhatTheServerSaysHoldsForAll) {
  questions.want({"a", "b"});
  fail("a", 60s);
  EXPECT_GE(questions.next_due(), now + 60s);
}

TEST_F(VolumeQuestionsTest, TroubleIsThatOfTheOneThatFailsMost) {
  questions.want({"a", "b"});
  EXPECT_EQ(questions.trouble(), nullptr);
  const auto timeout = [](const Error& error) { return error.code() == Errc::timeout; };
  fail("a");
  EXPECT_FALSE(questions.all_failed(timeout));
  fail("b");
  fail("b");
  EXPECT_TRUE(questions.all_failed(timeout));
  ASSERT_NE(questions.trouble(), nullptr);
  EXPECT_EQ(questions.trouble()->message(), "no answer about b");
  questions.want({});
  EXPECT_EQ(questions.trouble(), nullptr) << "it has gone";
  EXPECT_EQ(questions.next_due(), TimePoint::max());
}

TEST_F(VolumeQuestionsTest, RefusalsCountInARow) {
  questions.want({"a"});
  questions.failed("a", Error(Errc::status, "no"), true, now, rng);
  questions.failed("a", Error(Errc::status, "no"), true, now, rng);
  EXPECT_EQ(questions.refusals("a"), 2u);
  fail("a");
  EXPECT_EQ(questions.refusals("a"), 0u);
}

TEST(VolumeAndClaim, WhichClaimOfTheNameHasTheVolume) {
  struct Row {
    const char* what;
    const char* claim_uid_in_volume;
    const char* uid_of_claim;
    const char* volume_of_claim;
    bool its;
  };
  const Row rows[] = {
      {"the same", "u", "u", "pv", true},
      {"made anew, with another volume", "u", "v", "other", false},
      {"made anew, not bound yet", "u", "v", "", false},
      {"the same, not bound yet", "u", "u", "", true},
      {"the same, but bound to another volume, which is what its pods mount", "u", "u", "other", false},
      {"made anew, and bound to this volume all the same", "u", "v", "pv", true},
      {"the reference was written by a person, its claim has it", "", "v", "pv", true},
      {"the reference was written by a person, its claim has another", "", "v", "other", false},
      {"the reference was written by a person, its claim has none", "", "v", "", true},
      {"a claim without a UID", "u", "", "", true},
  };
  for (const Row& row : rows) {
    k8s::PersistentVolume volume;
    volume.name = "pv";
    volume.claim_uid = row.claim_uid_in_volume;
    k8s::PersistentVolumeClaim claim;
    claim.uid = row.uid_of_claim;
    claim.volume_name = row.volume_of_claim;
    EXPECT_EQ(is_volume_of(volume, claim), row.its) << row.what;
  }
}

TEST(VolumeAndClaim, WhatIsBoundIsBelieved) {
  k8s::PersistentVolume volume;
  for (const auto& [phase, ask] :
       {std::pair("Bound", false), {"Released", true}, {"Failed", true}, {"Available", true}, {"", false}}) {
    volume.phase = phase;
    EXPECT_EQ(may_be_of_an_earlier_claim(volume), ask) << phase;
  }
}

}  // namespace
}  // namespace haulout::drain
