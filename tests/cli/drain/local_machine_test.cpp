// Tests the machine of `haulout retire --local` with real programs in a temporary directory.
#include "cli/drain/local_machine.hpp"

#include <gmock/gmock.h>

#include <tuple>

#include "retry/task_group.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/support/real_time.hpp"

namespace haulout::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LocalMachineTest : public haulout::testing::RealTimeTest {
 protected:
  haulout::testing::TempDir dir;
  std::unique_ptr<LocalMachine> machine = this_machine(clock, dir.path());
  std::vector<std::string> lines;

  void script(const std::string& name, const std::string& body) {
    dir.write_script("etc/haulout/retire.d/" + name, body);
  }
  Task<> started(const std::string& name, TimePoint deadline, ProgramEnvironment environment = {}) {
    return machine->run(name, std::move(environment), deadline,
                        [this](std::string_view line) { lines.emplace_back(line); });
  }
};

TEST_F(LocalMachineTest, ReadsItsIds) {
  dir.write("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
  dir.write("proc/sys/kernel/random/boot_id", "b007\n");
  const auto identity = machine->identity();
  ASSERT_TRUE(identity) << identity.error().message();
  EXPECT_EQ(identity->machine_id, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(identity->boot_id, "b007");
  EXPECT_FALSE(identity->host_name.empty());
}

TEST_F(LocalMachineTest, WithoutAMachineIdItHasNone) {
  dir.write("proc/sys/kernel/random/boot_id", "b007\n");
  EXPECT_EQ(machine->identity().value().machine_id, "");
}

TEST_F(LocalMachineTest, ListsProgramsAsHooksAreListed) {
  EXPECT_TRUE(machine->programs().value().names.empty()) << "no directory";
  script("20-b", "");
  script("10-a", "");
  script("10-a.dpkg-old", "");
  dir.write("etc/haulout/retire.d/30-c", "#!/bin/sh\n");
  const auto files = machine->programs().value();
  EXPECT_THAT(files.names, ElementsAre("10-a", "20-b"));
  EXPECT_THAT(files.skipped, ElementsAre(HasSubstr("/etc/haulout/retire.d/30-c")));
  ::chmod((dir / "etc/haulout/retire.d/20-b").c_str(), 0777);
  ASSERT_FALSE(machine->programs());
  EXPECT_THAT(machine->programs().error().message(), AllOf(HasSubstr("20-b"), HasSubstr("no clean-up program is run")));
}

// The lines of stdout and stderr arrive in the order in which the program has written them.
TEST_F(LocalMachineTest, ShowsTheOutputLineByLine) {
  script("10-a", "echo one; echo two >&2; echo \"$HAULOUT_NODE\"; printf rest");
  EXPECT_TRUE(run(started("10-a", soon(), {{"HAULOUT_NODE", "n1"}})));
  EXPECT_THAT(lines, ElementsAre("one", "two", "n1", "rest"));
}

TEST_F(LocalMachineTest, SaysWhyAProgramFailed) {
  script("10-a", "echo first; echo 'no room'; exit 3");
  const auto failed = run(started("10-a", soon()));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Errc::unavailable);
  EXPECT_EQ(failed.error().message(), "exit status 3: no room");
}

TEST_F(LocalMachineTest, AtItsDeadlineAProgramGetsSIGTERM) {
  script("10-a", "trap 'echo ended in order; exit 0' TERM\necho begun\nwhile :; do sleep 0.01; done");
  const auto late = run(started("10-a", clock.now() + std::chrono::milliseconds(300)));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::timeout);
  EXPECT_THAT(late.error().message(), HasSubstr("exceeded its time limit"));
}

boost::asio::awaitable<void> until_the_end(LocalMachine& machine, TimePoint deadline, std::vector<std::string>& lines) {
  std::ignore = co_await machine.run("10-a", {}, deadline, [&](std::string_view line) { lines.emplace_back(line); });
}

// The file shows that the program itself got SIGTERM, and not only the shell that starts it.
TEST_F(LocalMachineTest, ACancelledProgramGetsSIGTERM) {
  const std::string mark = dir / "ended";
  script("10-a", "trap 'touch " + mark + "; exit 0' TERM\necho begun\nwhile :; do sleep 0.01; done");
  run([&]() -> boost::asio::awaitable<void> {
    co_await with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      const auto id = group.spawn(until_the_end(*machine, soon(), lines));
      while (lines.empty()) co_await clock.sleep_until(clock.now() + std::chrono::milliseconds(5));
      group.cancel(id);
    });
  }());
  EXPECT_THAT(lines, ElementsAre("begun"));
  EXPECT_TRUE(std::filesystem::exists(mark));
}

}  // namespace
}  // namespace haulout::cli
