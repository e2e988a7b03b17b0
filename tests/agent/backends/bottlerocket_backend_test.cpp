#include "agent/backends/bottlerocket_backend.hpp"

#include <gmock/gmock.h>

#include "agent/ports/backend.hpp"
#include "retry/task_group.hpp"
#include "tests/agent/backends/fake_bottlerocket.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = BottlerocketStatus::State;

struct Row {
  const char* what;
  BottlerocketStatus status;
  Need need;
  std::string target;
};
class BottlerocketAnswer : public ::testing::TestWithParam<Row> {};

TEST_P(BottlerocketAnswer, OfAStatus) {
  const Row& row = GetParam();
  const Pending answer = bottlerocket_answer(row.status);
  EXPECT_EQ(answer.need, row.need) << row.what;
  EXPECT_EQ(answer.target, row.target) << row.what;
  EXPECT_EQ(answer.problem.empty(), row.need != Need::unknown) << row.what;
  EXPECT_EQ(answer.reasons.empty(), row.need != Need::yes) << row.what;
}

const BottlerocketStatus::LastCommand good_refresh{"refresh", "Success", "t", ""};
const BottlerocketStatus::LastCommand bad_refresh{"refresh", "Failed", "t", "no route"};
const BottlerocketStatus::LastCommand bad_prepare{"prepare", "Failed", "t", "no space"};

INSTANTIATE_TEST_SUITE_P(
    Rows, BottlerocketAnswer,
    ::testing::Values(
        Row{"nothing new", {.state = State::idle, .last = good_refresh}, Need::no, ""},
        Row{"never looked", {.state = State::idle}, Need::no, ""},
        Row{"the look failed", {.state = State::idle, .last = bad_refresh}, Need::unknown, ""},
        Row{"available", {.state = State::available, .chosen = "2", .last = good_refresh}, Need::yes, "2"},
        Row{"a failed try", {.state = State::available, .chosen = "2", .last = bad_prepare}, Need::yes, "2"},
        Row{"available, but what?", {.state = State::available}, Need::unknown, ""},
        Row{"staged", {.state = State::staged, .chosen = "2", .staged = "2"}, Need::yes, "2"},
        Row{"staged, newer chosen", {.state = State::staged, .chosen = "3", .staged = "2"}, Need::yes, "3"},
        Row{"staged, withdrawn", {.state = State::staged, .staged = "2"}, Need::no, ""},
        Row{"ready", {.state = State::ready, .staged = "2", .staged_boots_next = true}, Need::yes, "2"},
        Row{"ready, newer chosen",
            {.state = State::ready, .chosen = "3", .staged = "2", .staged_boots_next = true},
            Need::yes,
            "2"},
        Row{"ready, nothing boots", {.state = State::ready, .staged = "2"}, Need::unknown, ""},
        Row{"ready, no image", {.state = State::ready, .staged_boots_next = true}, Need::unknown, ""}));

class BottlerocketBackendTest : public haulout::testing::VirtualTimeTest {
 protected:
  // Passes requests to the fake without any delay.
  class Direct final : public http::Transport {
   public:
    explicit Direct(haulout::testing::FakeBottlerocket& fake) : fake_(fake) {}
    bool reachable = true;
    Task<http::Response> round_trip(http::Request request, TimePoint) override {
      if (!reachable) co_return Error(Errc::unreachable, "no socket");
      co_return fake_.answer(request);
    }
    Task<std::unique_ptr<http::BodyStream>> open(http::Request, TimePoint) override {
      co_return Error(Errc::protocol, "no streams here");
    }

   private:
    haulout::testing::FakeBottlerocket& fake_;
  };

  haulout::testing::FakeBottlerocket fake{clock};
  Direct transport{fake};
  SeededRng rng{1};
  BottlerocketBackend backend{transport, clock, rng};

  TimePoint in(Duration delta) const { return clock.now() + delta; }
  Pending pending() { return run(backend.pending(in(10min))); }
  Result<> apply(const std::string& target) { return run(backend.apply(target, in(30min))); }
  boost::asio::awaitable<void> ask() { static_cast<void>(co_await backend.pending(in(10min))); }
  boost::asio::awaitable<void> put_in_place() { applied = co_await backend.apply("1.16.0", in(30min)); }
  std::optional<Result<>> applied;
  void pass(Duration delta) { run(clock.sleep_until(in(delta))); }
};

TEST_F(BottlerocketBackendTest, LooksForUpdatesButNotEachTime) {
  EXPECT_EQ(pending(), Pending{.need = Need::no});
  EXPECT_EQ(pending(), Pending{.need = Need::no});
  EXPECT_THAT(fake.actions, ElementsAre("refresh"));
  fake.published = "1.16.0";
  pass(recheck_interval * 4 / 5);
  const Pending answer = pending();
  EXPECT_EQ(answer.need, Need::yes);
  EXPECT_EQ(answer.target, "1.16.0");
  EXPECT_THAT(answer.reasons, ElementsAre(HasSubstr("1.16.0")));
  EXPECT_THAT(fake.actions, ElementsAre("refresh", "refresh"));
}

TEST_F(BottlerocketBackendTest, ApplyPreparesAndActivates) {
  fake.published = "1.16.0";
  fake.work = 90s;
  ASSERT_EQ(pending().need, Need::yes);
  const auto applied = apply("1.16.0");
  ASSERT_TRUE(applied) << applied.error().message();
  EXPECT_THAT(fake.actions, ElementsAre("refresh", "prepare", "activate"));
  EXPECT_EQ(fake.state, "Ready");
  EXPECT_TRUE(fake.boots_next);
  EXPECT_EQ(pending().target, "1.16.0");
  EXPECT_EQ(*run(backend.booted(in(1min))), "1.15.1");

  ASSERT_TRUE(apply("1.16.0"));
  EXPECT_EQ(fake.actions.size(), 3u) << "in place already";
}

// Regression: while an update waited for the result of its refresh, the result of an earlier refresh by the same back
// end appeared. The update took it for a command of another client.
TEST_F(BottlerocketBackendTest, ALookForUpdatesDoesNotCrossAnUpdate) {
  fake.published = "1.16.0";
  fake.work = 90s;
  ASSERT_EQ(pending().need, Need::yes);
  pass(recheck_interval);
  run(with_task_group([this](TaskGroup& group) {
    group.spawn(ask());
    return put_in_place();
  }));
  ASSERT_TRUE(*applied) << applied->error().message();
  EXPECT_THAT(fake.actions, ElementsAre("refresh", "refresh", "prepare", "activate"));
}

TEST_F(BottlerocketBackendTest, ApplyAfterARestartOfTheAgentLooksFirst) {
  fake.published = "1.16.0";
  ASSERT_TRUE(apply("1.16.0"));
  EXPECT_THAT(fake.actions, ElementsAre("refresh", "prepare", "activate"));
}

TEST_F(BottlerocketBackendTest, ApplyGoesOnWhereAnotherStopped) {
  fake.published = fake.chosen = fake.staged = "1.16.0";
  fake.state = "Staged";
  ASSERT_EQ(pending().target, "1.16.0");
  ASSERT_TRUE(apply("1.16.0"));
  EXPECT_THAT(fake.actions, ElementsAre("refresh", "activate"));
}

TEST_F(BottlerocketBackendTest, ANewerChoiceIsWrittenOverAStagedOne) {
  fake.published = "1.17.0";
  fake.staged = "1.16.0";
  fake.state = "Staged";
  ASSERT_EQ(pending().target, "1.17.0");
  ASSERT_TRUE(apply("1.17.0"));
  EXPECT_THAT(fake.actions, ElementsAre("refresh", "prepare", "activate"));
  EXPECT_EQ(fake.staged, "1.17.0");
}

TEST_F(BottlerocketBackendTest, AnEmptyTargetIsWhateverIsChosen) {
  fake.published = "1.16.0";
  ASSERT_TRUE(apply(""));
  EXPECT_EQ(fake.state, "Ready");
  ASSERT_TRUE(apply(""));
  EXPECT_EQ(fake.actions.size(), 3u);
}

TEST_F(BottlerocketBackendTest, AnotherVersionThanAskedForIsNotPutInPlace) {
  fake.published = "1.17.0";
  ASSERT_EQ(pending().target, "1.17.0");
  auto applied = apply("1.16.0");
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().code(), Errc::invalid);
  EXPECT_THAT(applied.error().message(), AllOf(HasSubstr("1.16.0"), HasSubstr("1.17.0")));
  EXPECT_THAT(fake.actions, ElementsAre("refresh"));

  ASSERT_TRUE(apply("1.17.0"));
  applied = apply("1.16.0");
  ASSERT_FALSE(applied) << "1.17.0 is in place";
  EXPECT_EQ(applied.error().code(), Errc::invalid);
}

TEST_F(BottlerocketBackendTest, NothingToApplyIsAnError) {
  EXPECT_FALSE(apply("1.16.0"));
  EXPECT_FALSE(apply(""));
  EXPECT_THAT(fake.actions, ElementsAre("refresh"));
}

TEST_F(BottlerocketBackendTest, WaitsForTheLockOfAnother) {
  fake.published = "1.16.0";
  fake.locked_until = in(30s);
  EXPECT_EQ(pending().need, Need::yes);
  EXPECT_GE(elapsed(), 30s);
  EXPECT_LE(elapsed(), 33s);
}

TEST_F(BottlerocketBackendTest, ALockBeyondTheDeadlineIsUnknown) {
  fake.locked_until = TimePoint::max();
  const Pending answer = pending();
  EXPECT_EQ(answer.need, Need::unknown);
  EXPECT_THAT(answer.problem, HasSubstr("lock"));
  EXPECT_LE(elapsed(), 10min);
  const auto applied = run(backend.apply("1.16.0", in(1min)));
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().code(), Errc::timeout);
}

TEST_F(BottlerocketBackendTest, AFailedLookIsUnknownUntilOneSucceeds) {
  fake.failing = {"refresh"};
  for (int i = 0; i < 2; ++i) {
    const Pending answer = pending();
    EXPECT_EQ(answer.need, Need::unknown);
    EXPECT_THAT(answer.problem, HasSubstr("no route to host"));
  }
  EXPECT_EQ(fake.actions.size(), 1u) << "not tried again at once";
  fake.failing.clear();
  pass(recheck_interval * 4 / 5);
  EXPECT_EQ(pending().need, Need::no);
}

TEST_F(BottlerocketBackendTest, AFailedCommandEndsApply) {
  fake.published = "1.16.0";
  for (const std::string& type : {"prepare", "activate"}) {
    fake.failing = {type};
    const auto applied = apply("1.16.0");
    ASSERT_FALSE(applied) << type;
    EXPECT_EQ(applied.error().code(), Errc::unavailable);
    EXPECT_THAT(applied.error().message(), AllOf(HasSubstr(type), HasSubstr("no route to host")));
    EXPECT_NE(fake.state, "Ready");
  }
  fake.failing.clear();
  EXPECT_TRUE(apply("1.16.0"));
}

TEST_F(BottlerocketBackendTest, SomebodyElsesCommandIsNotTakenForOurs) {
  fake.published = "1.16.0";
  ASSERT_EQ(pending().need, Need::yes);
  fake.intruder = "deactivate";
  const auto applied = apply("1.16.0");
  ASSERT_FALSE(applied);
  EXPECT_THAT(applied.error().message(), HasSubstr("deactivate"));
}

TEST_F(BottlerocketBackendTest, ACommandThatNeverEndsIsATimeout) {
  fake.published = "1.16.0";
  fake.hanging = {"prepare"};
  ASSERT_EQ(pending().need, Need::yes);
  const auto applied = run(backend.apply("1.16.0", in(5min)));
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().code(), Errc::timeout);
  EXPECT_LE(elapsed(), 6min);
}

TEST_F(BottlerocketBackendTest, RefusalsCarryTheirStatus) {
  fake.published = "1.16.0";
  ASSERT_EQ(pending().need, Need::yes);
  for (const int status : {404, 409, 500}) {
    fake.refusal = status;
    const auto applied = apply("1.16.0");
    ASSERT_FALSE(applied) << status;
    EXPECT_TRUE(applied.error().is_status(status));
    EXPECT_THAT(applied.error().message(), AllOf(HasSubstr(std::to_string(status)), HasSubstr("prepare-update")));
  }
}

TEST_F(BottlerocketBackendTest, WhatCannotBeReadIsUnknown) {
  for (const char* body : {"<html>", "{}", R"({"update_state": "Perhaps"})"}) {
    fake.status_body = body;
    EXPECT_EQ(pending().need, Need::unknown) << body;
    EXPECT_FALSE(apply("1.16.0")) << body;
  }
  EXPECT_THAT(fake.actions, IsEmpty());
  transport.reachable = false;
  const Pending answer = pending();
  EXPECT_EQ(answer.need, Need::unknown);
  EXPECT_THAT(answer.problem, HasSubstr("/updates/status"));
  EXPECT_FALSE(run(backend.booted(in(1min))));
}

TEST_F(BottlerocketBackendTest, AsksAgainAboutEveryTenMinutes) {
  run(backend.changed());
  EXPECT_GE(elapsed(), recheck_interval * 4 / 5);
  EXPECT_LE(elapsed(), recheck_interval * 6 / 5);
  EXPECT_EQ(backend.name(), "bottlerocket");
}

}  // namespace
}  // namespace haulout::agent
