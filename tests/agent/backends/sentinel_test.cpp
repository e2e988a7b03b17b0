#include "agent/backends/file_backend.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {
using namespace std::string_literals;
using ::testing::ElementsAre;
using Content = Result<std::optional<std::string>>;

Content holding(std::string text) {
  return std::optional<std::string>(std::move(text));
}

TEST(SentinelAnswer, PresenceIsYesWithItsFirstLineOrItsName) {
  const Pending with_text = sentinel_answer(holding("\n*** System restart required ***\nx"), "/run/s");
  EXPECT_EQ(with_text.need, Need::yes);
  EXPECT_THAT(with_text.reasons, ElementsAre("*** System restart required ***"));
  for (const std::string& blank : {""s, "\n\n"s, "\0\0"s}) {
    const Pending empty = sentinel_answer(holding(blank), "/run/s");
    EXPECT_EQ(empty.need, Need::yes);
    ASSERT_EQ(empty.reasons.size(), 1u);
    EXPECT_THAT(empty.reasons.front(), ::testing::HasSubstr("/run/s"));
  }
}

TEST(SentinelAnswer, AbsenceIsNo) {
  EXPECT_EQ(sentinel_answer(std::optional<std::string>(), "/run/s"), Pending{.need = Need::no});
}

TEST(SentinelAnswer, AnErrorIsUnknownWithTheProblem) {
  const Pending answer = sentinel_answer(Error(Errc::unavailable, "cannot read /run/s"), "/run/s");
  EXPECT_EQ(answer, (Pending{.need = Need::unknown, .problem = "cannot read /run/s"}));
}

TEST(EitherAnswer, YesBeatsUnknownBeatsNo) {
  const Pending yes{.need = Need::yes, .reasons = {"r"}};
  const Pending also{.need = Need::yes, .reasons = {"s"}};
  const Pending no{.need = Need::no};
  const Pending unknown{.need = Need::unknown, .problem = "p"};
  const Pending puzzle{.need = Need::unknown, .problem = "q"};
  EXPECT_EQ(either(yes, no), yes);
  EXPECT_EQ(either(no, yes), yes);
  EXPECT_EQ(either(yes, unknown), yes);
  EXPECT_EQ(either(unknown, yes), yes);
  EXPECT_EQ(either(no, unknown), unknown);
  EXPECT_EQ(either(unknown, no), unknown);
  EXPECT_EQ(either(unknown, puzzle), unknown);
  EXPECT_EQ(either(no, no), no);
  EXPECT_THAT(either(yes, also).reasons, ElementsAre("r", "s"));
}

}  // namespace
}  // namespace haulout::agent
