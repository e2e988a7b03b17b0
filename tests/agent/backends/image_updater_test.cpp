#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "agent/backends/image_backend.hpp"
#include "retry/task_group.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Simulates a machine with an update tool. Versions of the system are numbers. The tool prints three of them: the
// booted one, the one that boots next, and the offered one.
class FakeTool final : public HostPrograms {
 public:
  explicit FakeTool(Clock& clock) : clock_(clock) {}

  Task<ProgramEnd> run(HostProgram program, TimePoint deadline) override {
    const std::string what = program.args.front();
    ran.push_back(what);
    units.push_back(program.unit);
    if (what != "status") {
      EXPECT_FALSE(std::exchange(busy_, true)) << what << " runs beside another program of the tool";
      co_await clock_.sleep_until(std::min(deadline, clock_.now() + takes));
      busy_ = false;
      if (clock_.now() >= deadline) co_return Error(Errc::timeout, "took too long");
    }
    if (what == "stage" && strange > 0) {
      --strange;
      co_return ProgramEnd{.ours = false, .success = true};
    }
    if (failing.contains(what)) co_return ProgramEnd{.status = 1, .how = "exit status 1: no space left"};
    if (what == "stage" && writes) next = offered;
    co_return ProgramEnd{.success = true, .status = 0, .output = booted + " " + next + " " + offered};
  }
  Task<bool> runs(std::string unit, TimePoint) override { co_return unit == running_unit; }

  std::string booted = "1", next = "1", offered = "2";
  bool writes = true;
  int strange = 0;
  std::set<std::string> failing;
  std::string running_unit;
  Duration takes = 10s;
  std::vector<std::string> ran, units;

 private:
  Clock& clock_;
  bool busy_ = false;
};

std::string word(const ToolAnswers& answers, std::size_t number) {
  std::istringstream words(answers.back().output);
  std::string word;
  for (std::size_t i = 0; i <= number; ++i) words >> word;
  return word;
}

Result<Images> images(const ToolAnswers& answers, const OsRelease&) {
  Images found{word(answers, 0), word(answers, 1)};
  found.next_is_shared = found.next != "slot";
  if (found.next == found.booted) found.next.clear();
  return found;
}

Result<Updates> offer(const ToolAnswers& answers) {
  return Updates{.need = Need::yes, .count = 1, .first = {"3 packages"}, .target = word(answers, 2)};
}

ImageTool numbers() {
  return {.name = "numbers",
          .status = {{{"/usr/bin/tool", "status"}}},
          .read_images = images,
          .look = {{{"/usr/bin/tool", "check"}}},
          .read_offer = offer,
          .stage = {{"/usr/bin/tool", "stage"}}};
}

class ImageUpdaterTest : public haulout::testing::VirtualTimeTest {
 protected:
  TimePoint soon() const { return clock.now() + 1h; }
  haulout::testing::TempDir root;
  SeededRng rng{1};
  FakeTool tool{clock};
  ImageBackend backend{numbers(), HostRoot(root.path()), tool, clock, rng};
  ImageUpdater updater{numbers(), backend, tool, clock, rng};
};

TEST_F(ImageUpdaterTest, TheBackEndComparesTheRunningImageWithTheNext) {
  EXPECT_EQ(run(backend.pending(soon())), (Pending{.need = Need::no}));
  EXPECT_EQ(*run(backend.booted(soon())), "1");
  tool.next = "2";
  EXPECT_EQ(run(backend.pending(soon())), (Pending{.need = Need::yes, .reasons = {"staged: 2"}, .target = "2"}));
  tool.failing = {"status"};
  const Pending unknown = run(backend.pending(soon()));
  EXPECT_EQ(unknown.need, Need::unknown);
  EXPECT_THAT(unknown.problem, HasSubstr("/usr/bin/tool status: exit status 1: no space left"));
  EXPECT_FALSE(run(backend.booted(soon())));
}

TEST_F(ImageUpdaterTest, TheBackEndSaysWhetherItsVersionsAreShared) {
  EXPECT_TRUE(backend.versions_are_shared());
  ImageTool snapshots = numbers();
  snapshots.versions_are_shared = false;
  EXPECT_FALSE(ImageBackend(snapshots, HostRoot(root.path()), tool, clock, rng).versions_are_shared());
  tool.next = "slot";
  run(backend.pending(soon()));
  EXPECT_FALSE(backend.versions_are_shared()) << "this image has no version";
  tool.next = "2";
  run(backend.pending(soon()));
  EXPECT_TRUE(backend.versions_are_shared());
}

TEST_F(ImageUpdaterTest, LooksWithoutAChange) {
  EXPECT_EQ(run(updater.look(soon())),
            (Updates{.need = Need::yes, .count = 1, .first = {"1 to 2 (3 packages)"}, .target = "2"}));
  EXPECT_THAT(tool.ran, ::testing::Not(::testing::Contains("stage")));
  tool.next = "2";
  EXPECT_EQ(run(updater.look(soon())), (Updates{.need = Need::no})) << "it is in place";
  tool.offered = "3";
  EXPECT_EQ(run(updater.look(soon())).need, Need::yes) << "another one has come since";
  tool.next = tool.offered = "1";
  EXPECT_EQ(run(updater.look(soon())).need, Need::no) << "it runs";
}

// P4: if the tool fails, it is unknown whether there is an update. That does not count as "no update".
TEST_F(ImageUpdaterTest, WhatCannotBeReadIsUnknown) {
  for (const char* const what : {"check", "status"}) {
    tool.failing = {what};
    const Updates updates = run(updater.look(soon()));
    EXPECT_EQ(updates.need, Need::unknown);
    EXPECT_THAT(updates.problem, HasSubstr("no space left"));
    EXPECT_FALSE(run(updater.install(soon())));
  }
  tool.failing.clear();
  EXPECT_EQ(run(updater.look(clock.now() + 1s)).need, Need::unknown);
  EXPECT_THAT(tool.ran, ::testing::Not(::testing::Contains("stage")));
}

TEST_F(ImageUpdaterTest, StagesAndChecksThatItIsInPlace) {
  ASSERT_TRUE(run(updater.install(soon())));
  EXPECT_EQ(tool.next, "2");
  ASSERT_TRUE(run(updater.install(soon())));
  EXPECT_EQ(std::ranges::count(tool.ran, "stage"), 1) << "what is in place is not written again";
  tool.offered = "3";
  tool.next = "1";
  tool.writes = false;
  const auto done = run(updater.install(soon()));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("/usr/bin/tool stage reported success, but no image is staged"));
  tool.failing = {"stage"};
  EXPECT_THAT(run(updater.install(soon())).error().message(), HasSubstr("no space left"));
}

// The arguments of a program may depend on what another one has answered.
TEST_F(ImageUpdaterTest, ALookMayTakeTwoQuestions) {
  ImageTool closer = numbers();
  closer.look = closer.status;
  closer.look_closer = [](const ToolAnswers& answers) -> Result<std::vector<ToolCommand>> {
    if (word(answers, 0) == "9") return Error(Errc::unavailable, "version 9 follows no branch");
    return std::vector<ToolCommand>{{{"/usr/bin/tool", "check-" + word(answers, 0)}}};
  };
  closer.read_offer = [](const ToolAnswers& answers) {
    EXPECT_EQ(answers.size(), 2U) << "all answers, in their order";
    return offer(answers);
  };
  ImageUpdater other(closer, backend, tool, clock, rng);
  EXPECT_EQ(run(other.look(soon())).target, "2");
  EXPECT_THAT(tool.ran, ::testing::IsSupersetOf({"status", "check-1"}));
  tool.failing = {"check-1"};
  EXPECT_THAT(run(other.look(soon())).problem, HasSubstr("/usr/bin/tool check-1: exit status 1: no space left"));
  tool.booted = "9";
  const Updates updates = run(other.look(soon()));
  EXPECT_EQ(updates.need, Need::unknown);
  EXPECT_THAT(updates.problem, HasSubstr("version 9 follows no branch"));
}

// P7: while a program of an earlier agent still runs, the updater starts no program of its own.
TEST_F(ImageUpdaterTest, WaitsForTheProgramOfAnEarlierAgent) {
  tool.running_unit = "haulout-update.service";
  EXPECT_THAT(*run(updater.blocked_by(soon())), HasSubstr("haulout-update.service"));
  EXPECT_EQ(run(updater.look(soon())).need, Need::unknown);
  EXPECT_THAT(tool.ran, IsEmpty()) << "two programs of a tool get in each other's way";
  tool.running_unit.clear();
  EXPECT_EQ(*run(updater.blocked_by(soon())), "");
  tool.strange = 1;
  ASSERT_TRUE(run(updater.install(soon())));
  EXPECT_EQ(std::ranges::count(tool.ran, "stage"), 2);
}

TEST_F(ImageUpdaterTest, ALookWaitsWhileAnImageIsWritten) {
  run([&]() -> boost::asio::awaitable<void> {
    co_await with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn([](ImageUpdater& it, TimePoint deadline) -> boost::asio::awaitable<void> {
        const auto done = co_await it.install(deadline);
        EXPECT_TRUE(done);
      }(updater, soon()));
      co_await clock.sleep_until(clock.now() + 15s);
      const Updates updates = co_await updater.look(soon());
      EXPECT_EQ(updates.need, Need::no);
    });
  }());
  // Each program that only reads has a unit of its own. All programs that change the machine share the unit
  // haulout-update.service.
  EXPECT_EQ(std::ranges::count(tool.units, "haulout-update.service"), 1);
}

}  // namespace
}  // namespace haulout::agent
