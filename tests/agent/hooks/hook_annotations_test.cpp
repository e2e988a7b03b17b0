#include "agent/hooks/hooks.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto point = HookPoint::before_drain;
constexpr WallTime asked{1'700'000'000s};
const std::string ticket = "before-drain@2023-11-14T22:13:20.000000Z";

k8s::Node node_with(std::map<std::string, std::string> annotations) {
  k8s::Node node;
  node.annotations = std::move(annotations);
  return node;
}

TEST(AskedHooks, AreThoseOfThePointByName) {
  const auto node = node_with({{"hook.haulout.dev/before-drain.rook", ""},
                               {"hook.haulout.dev/before-drain.db", "limit=1h, failure=continue"},
                               {"hook.haulout.dev/after-drain.other", ""},
                               {"hook-done.haulout.dev/before-drain.rook", "x"},
                               {"example.com/before-drain.x", ""}});
  const auto hooks = asked_hooks(node, point, {.limit = 5min, .stop = true});
  ASSERT_EQ(hooks.size(), 2u);
  EXPECT_EQ(hooks[0].name, "db");
  EXPECT_EQ(hooks[0].rules.limit, 1h);
  EXPECT_FALSE(hooks[0].rules.stop);
  EXPECT_EQ(hooks[1].name, "rook");
  EXPECT_EQ(hooks[1].rules.limit, 5min);
  EXPECT_TRUE(hooks[1].rules.stop);
  EXPECT_THAT(hooks[1].problem, IsEmpty());
}

// A typing error neither disables a hook nor makes it wait forever.
TEST(AskedHooks, WhatCannotBeReadIsSaidAndTheCommonRuleHolds) {
  for (const char* value : {"limit=5x", "limit=0", "limit=-1m", "failure=ignore", "rook-operator", "limit=", ",",
                            "failure=continue,limit"}) {
    const auto hooks = asked_hooks(node_with({{"hook.haulout.dev/before-drain.x", value}}), point, {.limit = 5min});
    ASSERT_EQ(hooks.size(), 1u) << value;
    EXPECT_EQ(hooks[0].rules.limit, 5min) << value;
    EXPECT_NE(hooks[0].problem, "") << value;
  }
}

TEST(AskedHooks, ThoseThatWouldNeverBeAskedAreNamed) {
  const auto node = node_with({{"hook.haulout.dev/predrain.rook", ""},
                               {"hook.haulout.dev/before-drain", ""},
                               {"hook.haulout.dev/before-drain.", ""},
                               {"hook.haulout.dev/after-boot.fine", ""}});
  EXPECT_THAT(misnamed_hooks(node),
              ElementsAre(HasSubstr("/before-drain must have the form"), HasSubstr("/before-drain. must have the form"),
                          HasSubstr("predrain.rook")));
}

TEST(Tickets, NameThePointAndTheMoment) {
  EXPECT_EQ(hook_ticket(point, asked), ticket);
  EXPECT_NE(hook_ticket(point, asked + 1us), ticket);
}

struct AnswerCase {
  const char* name;
  std::string answer;  // "-" if there is no answer
  WallTime now;
  bool failed, waiting;
};

class Answers : public ::testing::TestWithParam<AnswerCase> {};

TEST_P(Answers, AreJudged) {
  const AnswerCase& row = GetParam();
  auto node = node_with({{"hook.haulout.dev/before-drain.rook", ""}});
  if (row.answer != "-") node.annotations["hook-done.haulout.dev/before-drain.rook"] = row.answer;
  const auto hooks = asked_hooks(node, point, {.limit = 5min});
  const auto verdict = judge_answers(hooks, node, point, asked, row.now);
  EXPECT_EQ(!verdict.failed.empty(), row.failed) << verdict.failed;
  EXPECT_EQ(!verdict.waiting.empty(), row.waiting);
  EXPECT_EQ(verdict.look_again.has_value(), row.waiting);
  if (row.failed) EXPECT_THAT(verdict.failed, HasSubstr("before-drain.rook"));
}

INSTANTIATE_TEST_SUITE_P(
    All, Answers,
    ::testing::Values(AnswerCase{"Done", ticket, asked + 1s, false, false},
                      AnswerCase{"DoneWithBlanks", " " + ticket + " ", asked + 1s, false, false},
                      AnswerCase{"DoneInTimeAndLookedAtLate", ticket, asked + 1h, false, false},
                      AnswerCase{"Failed", ticket + " failed: no quorum", asked + 1s, true, false},
                      AnswerCase{"None", "-", asked + 1s, false, true},
                      AnswerCase{"NoneInTime", "-", asked + 5min, true, false},
                      AnswerCase{"OfAnotherTime", "before-drain@2023-11-13T22:13:20.000000Z", asked + 1s, false, true},
                      AnswerCase{"OfAnotherPoint", "after-drain@2023-11-14T22:13:20.000000Z", asked + 1s, false, true},
                      AnswerCase{"Word", "done", asked + 1s, false, true},
                      AnswerCase{"TicketAndMore", ticket + "5", asked + 1s, false, true},
                      AnswerCase{"ClockWentBack", "-", asked - 1h, false, true}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(Answers, AFailureThatMayBeOverlookedIs) {
  auto node = node_with({{"hook.haulout.dev/before-drain.a", "failure=continue"},
                         {"hook.haulout.dev/before-drain.b", "failure=continue,limit=1m"},
                         {"hook.haulout.dev/before-drain.c", "limit=1h"}});
  node.annotations["hook-done.haulout.dev/before-drain.a"] = ticket + " failed: no\nquorum";
  const auto verdict = judge_answers(asked_hooks(node, point, {}), node, point, asked, asked + 2min);
  EXPECT_THAT(verdict.failed, IsEmpty());
  EXPECT_THAT(verdict.overlooked, ElementsAre(HasSubstr("no quorum"), HasSubstr("within 1m")));
  EXPECT_THAT(verdict.waiting, ElementsAre("before-drain.c"));
  EXPECT_EQ(verdict.look_again, asked + 1h);
}

}  // namespace
}  // namespace haulout::agent
