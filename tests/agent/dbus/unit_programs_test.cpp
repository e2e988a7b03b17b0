#include "agent/dbus/unit_programs.hpp"

#include <sys/wait.h>

#include "agent/dbus/unit_hooks.hpp"

#include "tests/agent/dbus/bus_fixture.hpp"
#include "tests/agent/dbus/fake_units.hpp"

namespace haulout::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string unit = "haulout-update.service";

class UnitProgramsTest : public LiveBusTest {
 protected:
  UnitProgramsTest() { units.connect(daemon.address()); }

  // Runs a program. Calls `meanwhile` once the fake systemd has received the call `awaited`.
  Result<agent::ProgramEnd> run_program(const std::string& awaited, const std::function<void()>& meanwhile) {
    std::optional<Result<agent::ProgramEnd>> out;
    run({&units}, [&](TaskGroup& group) -> awaitable<void> {
      group.spawn(ask(out));
      co_await until(
          [&] { return out || std::find(units.calls.begin(), units.calls.end(), awaited) != units.calls.end(); });
      if (!out) meanwhile();
      co_await until([&] { return out.has_value(); });
    });
    return *out;
  }
  awaitable<void> ask(std::optional<Result<agent::ProgramEnd>>& out) {
    agent::HostProgram program{.program = "/usr/bin/apt-get", .args = {"-s"}, .unit = unit, .description = "Looks"};
    program.keeps_output = keeps_output;
    out = co_await programs.run(std::move(program), soon());
    event.notify();
  }
  const std::string started = "Start(" + unit + ")";
  FakeUnits units{context.get_executor(), clock, event};
  agent::UnitPrograms programs{bus};
  bool keeps_output = true;
};

TEST_F(UnitProgramsTest, ReturnsItsOutput) {
  const auto end = run_program(
      started, [&] { units.end_unit(unit, "success", CLD_EXITED, 0, "W: a warning\n", "Inst openssl\nmore\n"); });
  ASSERT_TRUE(end) << end.error().message();
  EXPECT_TRUE(end->success);
  EXPECT_EQ(end->status, 0);
  EXPECT_TRUE(end->ours);
  EXPECT_EQ(end->output, "Inst openssl\nmore\n");
}

TEST_F(UnitProgramsTest, OutputThatNobodyWantsStaysInTheJournal) {
  keeps_output = false;
  const auto end = run_program(started, [&] {
    EXPECT_FALSE(units.units[unit].properties.contains("StandardOutputFileDescriptor"));
    units.end_unit(unit, "success", CLD_EXITED, 0);
  });
  ASSERT_TRUE(end) << end.error().message();
  EXPECT_EQ(end->output, "");
}

TEST_F(UnitProgramsTest, AFailureHasTheEndOfItsErrors) {
  const auto end = run_program(started, [&] {
    units.end_unit(unit, "exit-code", CLD_EXITED, 100, "dpkg: no space left\nE: Sub-process returned an error\n");
  });
  ASSERT_TRUE(end) << end.error().message();
  EXPECT_FALSE(end->success);
  EXPECT_EQ(end->status, 100);
  EXPECT_THAT(end->how, AllOf(HasSubstr("exit status 100"), HasSubstr("no space left"), HasSubstr("Sub-process")));
}

// P4, P7: the unit of an earlier agent says nothing about the program of this call. So its end is reported as not the
// own one, and without its output.
TEST_F(UnitProgramsTest, AnEarlierAgentsUnitIsNotItsOwn) {
  units.add_running(unit);
  const auto end =
      run_program("RefUnit(" + unit + ")", [&] { units.end_unit(unit, "success", CLD_EXITED, 0, "", "old\n"); });
  ASSERT_TRUE(end) << end.error().message();
  EXPECT_FALSE(end->ours);
  EXPECT_EQ(end->output, "");
}

TEST_F(UnitProgramsTest, AUnitRunsUntilItHasEnded) {
  std::vector<bool> answers;
  run({&units}, [&](TaskGroup&) -> awaitable<void> {
    for (const bool ends : {false, true}) {
      units.add_running(unit);
      if (ends) units.end_unit(unit, "success", CLD_EXITED, 0);
      const auto runs = co_await programs.runs(unit, soon());
      answers.push_back(runs && *runs);
    }
    const auto unknown = co_await programs.runs("other.service", soon());
    EXPECT_TRUE(unknown && !*unknown);
  });
  EXPECT_THAT(answers, ::testing::ElementsAre(true, false));
}

// systemd has queued the start of the unit and not started it yet. The unit already counts as running.
TEST_F(UnitProgramsTest, AUnitWithAJobRuns) {
  run({&units}, [&](TaskGroup&) -> awaitable<void> {
    units.add_running(unit);
    units.units[unit].active_state = "inactive";
    const auto runs = co_await programs.runs(unit, soon());
    EXPECT_TRUE(runs && *runs);
  });
}

TEST_F(UnitProgramsTest, TooMuchOutputIsAnError) {
  const auto wordy = run_program(started, [&] {
    units.end_unit(unit, "success", CLD_EXITED, 0, "", std::string(agent::unit_output_limit + 1, 'x'));
  });
  EXPECT_EQ(error_of(wordy).code(), Errc::unavailable);
}

TEST_F(UnitProgramsTest, SystemdEndsWhatTakesTooLong) {
  const auto late = run_program(started, [&] { units.end_unit(unit, "timeout", CLD_KILLED, SIGTERM); });
  EXPECT_EQ(error_of(late).code(), Errc::timeout);
}

}  // namespace
}  // namespace haulout::testing
