#include "agent/backends/apt_updater.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "retry/task_group.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::StartsWith;

const std::string openssl = "Inst openssl [3.0.15-1] (3.0.16-1 Debian-Security:12/stable-security [amd64])\n";
const std::string vim = "Inst vim [1] (2 Debian:12/stable [amd64])\n";

// Simulates apt-get and dpkg on a machine. Its fields determine what they print and which calls fail.
class FakeApt final : public HostPrograms {
 public:
  explicit FakeApt(Clock& clock) : clock_(clock) {}

  Task<ProgramEnd> run(HostProgram program, TimePoint deadline) override {
    std::string what = "configure";
    for (const char* verb : {"--simulate", "--download-only", "update", "install", "upgrade", "showauto", "auto"})
      if (std::ranges::find(program.args, verb) != program.args.end()) {
        what = verb;
        break;
      }
    // These words are compared as a whole: other options of needrestart would restart nothing, or ask a person.
    if (program.args ==
        std::vector<std::string>{"-c", R"([ ! -x "$1" ] || exec "$@")", "sh", "/usr/sbin/needrestart", "-b", "-l"})
      what = "old services";
    if (program.args == std::vector<std::string>{"-m", "a", "-r", "a", "-l"}) what = "restart";
    if (std::ranges::find(program.args, "--property=SubState") != program.args.end()) what = "states";
    if (program.program == "/bin/sh" && what == "configure") what = "demand reboot";
    ran.push_back(what);
    programs.push_back(program);
    const int one = what == "--simulate" || what == "showauto" || what == "old services" || what == "states" ? 0 : 1;
    running += one;
    EXPECT_LE(running, 1) << what << " runs beside another program that changes the machine";
    co_await clock_.sleep_until(std::min(deadline, clock_.now() + takes));
    running -= one;
    if (clock_.now() >= deadline) co_return Error(Errc::timeout, "was not started within its time limit");
    if (!strange.empty()) {
      strange.pop_front();
      co_return ProgramEnd{.ours = false, .success = true};
    }
    if (lost > 0) {
      --lost;
      co_return Error(Errc::reset, "its result is unknown");
    }
    if (failing.contains(what)) co_return ProgramEnd{.how = "exit status 100: E: broken " + what};
    if (what == "--simulate") co_return ProgramEnd{.success = true, .output = waiting};
    if (what == "showauto") co_return ProgramEnd{.success = true, .output = "adduser\nopenssl\n"};
    if (what == "old services") co_return ProgramEnd{.success = true, .output = needrestart};
    if (what == "states") co_return ProgramEnd{.success = true, .output = states};
    if ((what == "install" || what == "upgrade") && installs) waiting.clear();
    co_return ProgramEnd{.success = true};
  }

  Task<bool> runs(std::string unit, TimePoint) override { co_return unit == running_unit; }

  std::string waiting;
  std::string needrestart;   // what needrestart -b prints; empty: the machine does not have it
  std::string states;        // what systemctl show prints
  std::string running_unit;  // unit that an earlier agent has started and that still runs
  bool installs = true;
  std::set<std::string> failing;
  std::deque<int> strange;  // each item makes one call find a program of an earlier agent instead of running its own
  int lost = 0;             // number of calls whose result is lost
  Duration takes = 1s;
  std::vector<std::string> ran;
  std::vector<HostProgram> programs;
  int running = 0;

 private:
  Clock& clock_;
};

class AptUpdaterTest : public haulout::testing::VirtualTimeTest {
 protected:
  TimePoint soon() const { return clock.now() + 1h; }
  AptUpdater updater(AptUpdater::Options options = {}) {
    return AptUpdater(HostRoot(root.path()), apt, clock, rng, std::move(options));
  }
  haulout::testing::TempDir root;
  SeededRng rng{1};
  FakeApt apt{clock};
};

TEST_F(AptUpdaterTest, LooksWithoutAChange) {
  apt.waiting = openssl + vim;
  AptUpdater all = updater();
  const Updates updates = run(all.look(soon()));
  EXPECT_EQ(updates.need, Need::yes);
  EXPECT_EQ(updates.count, 2u);
  EXPECT_THAT(updates.first, ElementsAre("openssl 3.0.15-1 to 3.0.16-1", "vim 1 to 2"));
  AptUpdater security = updater({.security_only = true});
  EXPECT_EQ(run(security.look(soon())).count, 1u);
  EXPECT_THAT(apt.ran, ElementsAre("--simulate", "--simulate"));
  // No two calls of look() share a unit: if a unit of that name still ran, the output of the second call would be lost.
  EXPECT_NE(apt.programs[0].unit, "");
  run(all.look(soon()));
  EXPECT_NE(apt.programs[0].unit, apt.programs[2].unit);
}

// P4: if the output of apt-get cannot be read or apt-get fails, it is unknown whether there are updates. That does not
// count as "no update".
TEST_F(AptUpdaterTest, WhatCannotBeReadIsUnknown) {
  AptUpdater it = updater();
  apt.waiting = "Inst ;;;\n";
  EXPECT_EQ(run(it.look(soon())).need, Need::unknown);
  apt.waiting = openssl;
  apt.failing = {"--simulate"};
  const Updates failed = run(it.look(soon()));
  EXPECT_EQ(failed.need, Need::unknown);
  EXPECT_THAT(failed.problem, HasSubstr("broken --simulate"));
  EXPECT_EQ(run(it.look(clock.now() + 1ms)).need, Need::unknown);
  EXPECT_FALSE(run(it.install(soon())));
}

TEST_F(AptUpdaterTest, RepairsThenInstallsThenLooks) {
  apt.waiting = openssl + vim;
  AptUpdater it = updater();
  const auto done = run(it.install(soon()));
  EXPECT_TRUE(done) << done.error().message();
  EXPECT_THAT(apt.ran, ElementsAre("configure", "--simulate", "upgrade", "--simulate"));
}

TEST_F(AptUpdaterTest, SecurityInstallsTheseVersionsOnly) {
  apt.waiting = openssl + vim;
  AptUpdater it = updater({.security_only = true});
  ASSERT_TRUE(run(it.install(soon())));
  EXPECT_THAT(apt.ran, ElementsAre("configure", "--simulate", "showauto", "install", "auto", "--simulate"));
  EXPECT_THAT(apt.programs[4].args, ElementsAre("auto", "openssl")) << "the mark that install has taken away";
  EXPECT_THAT(apt.programs[3].args,
              AllOf(Contains("--only-upgrade"), Contains("openssl=3.0.16-1"), Not(Contains(StartsWith("vim")))));
}

// needrestart runs in its own step, so apt's hook must not restart anything.
TEST_F(AptUpdaterTest, RestartsServicesByNeedrestart) {
  apt.needrestart = "NEEDRESTART-VER: 3.6\nNEEDRESTART-SVC: cron.service\nNEEDRESTART-SVC: dbus.service\n";
  AptUpdater it = updater();
  EXPECT_THAT(run(it.old_services(soon())).value(), ElementsAre("cron.service", "dbus.service"));
  ASSERT_TRUE(run(it.restart_services(soon())));
  EXPECT_THAT(apt.ran, ElementsAre("old services", "restart"));
  EXPECT_EQ(apt.programs[1].program, "/usr/sbin/needrestart");
  EXPECT_EQ(apt.programs[1].unit, "haulout-update.service");
  apt.waiting = openssl;
  ASSERT_TRUE(run(it.install(soon())));
  EXPECT_THAT(apt.programs.back().env, Contains(std::pair<std::string, std::string>("NEEDRESTART_SUSPEND", "1")));
  EXPECT_EQ(run(it.need_reboot_for({"dbus.service"}, soon())).value(), false);
  EXPECT_THAT(apt.ran, Not(Contains("demand reboot")));
}

TEST_F(AptUpdaterTest, AsksSystemdWhichServicesHaveFailed) {
  AptUpdater it = updater();
  EXPECT_THAT(run(it.failed_services({}, soon())).value(), IsEmpty());
  EXPECT_THAT(apt.ran, IsEmpty()) << "without a name, systemctl shows its manager";
  EXPECT_THAT(run(it.failed_services({"a.service"}, soon())).value(), IsEmpty()) << "a host without systemctl";
  apt.states = "failed\n\nrunning\n";
  EXPECT_THAT(run(it.failed_services({"a.service", "b.service"}, soon())).value(), ElementsAre("a.service"));
  EXPECT_THAT(apt.programs.back().args,
              ElementsAre("-c", R"([ ! -x "$1" ] || exec "$@")", "sh", "/bin/systemctl", "show", "--property=SubState",
                          "--value", "--", "a.service", "b.service"));
  EXPECT_FALSE(run(it.failed_services({"a.service"}, soon())));
  apt.failing = {"states"};
  EXPECT_FALSE(run(it.failed_services({"a.service"}, soon())));
}

// The real shell runs the script, beneath the test's directory instead of /run.
TEST_F(AptUpdaterTest, AReasonToRebootIsWrittenOnce) {
  AptUpdater it = updater({.reboot_for_services = true});
  ASSERT_TRUE(run(it.need_reboot_for({"dbus.service", "-a.service"}, soon())).value());
  ASSERT_EQ(apt.programs[0].args[0], "-c");
  std::string script = apt.programs[0].args[1];
  const std::string run_directory = "/run/";
  for (std::size_t at = script.find(run_directory); at != std::string::npos; at = script.find(run_directory, at))
    script.replace(at, run_directory.size(), root / "");
  const std::string command = "sh " + root.write("script", script);
  root.write("reboot-required.pkgs", "linux-base\na.service\n");
  for (const char* reasons : {" dbus.service -a.service", " -a.service dbus.service", " a"})
    ASSERT_EQ(std::system((command + reasons).c_str()), 0);
  std::stringstream text;
  text << std::ifstream(root / "reboot-required.pkgs").rdbuf();
  EXPECT_EQ(text.str(), "linux-base\na.service\ndbus.service\n-a.service\na\n");
  EXPECT_TRUE(std::filesystem::exists(root / "reboot-required"));
}

TEST_F(AptUpdaterTest, RebootsForServicesIfThatIsConfigured) {
  apt.needrestart = "NEEDRESTART-VER: 3.6\nNEEDRESTART-SVC: dbus.service\n";
  AptUpdater it = updater({.reboot_for_services = true});
  EXPECT_EQ(run(it.need_reboot_for({"dbus.service"}, soon())).value(), true);
  EXPECT_THAT(apt.ran, ElementsAre("demand reboot"));
  EXPECT_EQ(apt.programs[0].args.back(), "dbus.service");
  apt.failing = {"demand reboot"};
  EXPECT_FALSE(run(it.need_reboot_for({"dbus.service"}, soon())));
}

// P4: without an answer it is unknown which services are old. A machine without needrestart is not wrong, unless a
// reboot depends on the answer.
TEST_F(AptUpdaterTest, WithoutNeedrestartNoServiceIsKnown) {
  AptUpdater it = updater();
  EXPECT_THAT(run(it.old_services(soon())).value(), IsEmpty());
  AptUpdater strict = updater({.reboot_for_services = true});
  const auto unknown = run(strict.old_services(soon()));
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message(), HasSubstr("install it"));
  apt.needrestart = "Usage: needrestart\n";
  EXPECT_FALSE(run(it.old_services(soon())));
  apt.failing = {"old services"};
  EXPECT_FALSE(run(it.old_services(soon())));
}

TEST_F(AptUpdaterTest, NeverAsksAndNeverForces) {
  apt.waiting = openssl;
  AptUpdater it = updater();
  ASSERT_TRUE(run(it.download(soon())));
  ASSERT_TRUE(run(it.install(soon())));
  for (const HostProgram& program : apt.programs) {
    EXPECT_THAT(program.env, Contains(std::pair<std::string, std::string>("DEBIAN_FRONTEND", "noninteractive")));
    EXPECT_THAT(program.args, Each(Not(StartsWith("--allow"))));
    EXPECT_THAT(program.args, Not(Contains("--force-yes")));
    if (program.program != "/usr/bin/apt-get") continue;
    EXPECT_THAT(program.args,
                AllOf(Contains("APT::Get::AllowUnauthenticated=false"), Contains("APT::Get::allow-downgrades=false"),
                      Contains("APT::Get::AutomaticRemove=false"), Contains("APT::Get::Remove=false"),
                      Contains("Dpkg::Options::=--force-confold")));
  }
}

TEST_F(AptUpdaterTest, ASecondInstallationHasNothingToDo) {
  AptUpdater it = updater();
  EXPECT_TRUE(run(it.install(soon())));
  EXPECT_THAT(apt.ran, ElementsAre("configure", "--simulate", "--simulate"));
}

// P4: apt-get ends without an error, but the package that waited is still not installed. That counts as a failure.
TEST_F(AptUpdaterTest, AnInstallationThatChangesNothingHasFailed) {
  apt.waiting = openssl;
  apt.installs = false;
  AptUpdater it = updater();
  const auto done = run(it.install(soon()));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("openssl"));
}

TEST_F(AptUpdaterTest, AFailureHasItsCauseAndLeavesAsLittleAsItCan) {
  apt.waiting = openssl;
  apt.failing = {"upgrade"};
  AptUpdater it = updater();
  const auto done = run(it.install(soon()));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("broken upgrade"));
  EXPECT_THAT(apt.ran, ElementsAre("configure", "--simulate", "upgrade", "configure"));
}

TEST_F(AptUpdaterTest, WithoutTheRepairNothingIsInstalled) {
  apt.waiting = openssl;
  apt.failing = {"configure"};
  AptUpdater it = updater();
  EXPECT_FALSE(run(it.install(soon())));
  EXPECT_THAT(apt.ran, ElementsAre("configure"));
}

TEST_F(AptUpdaterTest, NeverRemovesAPackage) {
  apt.waiting = openssl + "Remv kubelet [1.36]\n";
  AptUpdater it = updater();
  const auto done = run(it.install(soon()));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("kubelet"));
  EXPECT_THAT(apt.ran, Not(Contains("upgrade")));
}

// P7: an earlier agent started a program and was killed. The end of that program says nothing about the program of this
// call, so the updater runs its own afterwards.
TEST_F(AptUpdaterTest, WaitsForTheProgramOfAnEarlierAgentAndThenRunsItsOwn) {
  apt.waiting = openssl;
  apt.strange = {1, 2};
  AptUpdater it = updater();
  ASSERT_TRUE(run(it.install(soon())));
  EXPECT_THAT(apt.ran, ElementsAre("configure", "configure", "configure", "--simulate", "upgrade", "--simulate"));
}

TEST_F(AptUpdaterTest, AResultThatIsLostIsNoSuccess) {
  apt.waiting = openssl;
  apt.lost = 1;
  AptUpdater it = updater();
  ASSERT_TRUE(run(it.install(soon())));
  EXPECT_THAT(apt.ran, ElementsAre("configure", "configure", "--simulate", "upgrade", "--simulate"));
}

boost::asio::awaitable<void> install_while_lists_are_fetched(AptUpdater& updater, TimePoint deadline) {
  co_await with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn(updater.changed());
    EXPECT_TRUE(co_await updater.install(deadline));
  });
}

TEST_F(AptUpdaterTest, ProgramsThatChangeTheMachineRunOneAfterTheOther) {
  apt.waiting = openssl;
  apt.takes = 20s;
  AptUpdater it = updater();
  run(install_while_lists_are_fetched(it, soon()));
  EXPECT_THAT(apt.ran, AllOf(Contains("update"), Contains("upgrade")));
}

TEST_F(AptUpdaterTest, TheDeadlineEndsTheInstallation) {
  apt.waiting = openssl;
  apt.takes = 2h;
  AptUpdater it = updater();
  const auto done = run(it.install(soon()));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Errc::timeout);
}

TEST_F(AptUpdaterTest, FetchesTheListsOnceADayAndLooksEachHalfHour) {
  AptUpdater it = updater();
  run(it.changed());
  EXPECT_LT(elapsed(), 1min);  // after its start, the agent fetches the lists at once
  int looks = 1;
  for (; elapsed() < 60h; ++looks) run(it.changed());
  EXPECT_THAT(looks, AllOf(Ge(100), Le(150)));  // each half hour, up to a fifth earlier or later
  EXPECT_GE(apt.ran.size(), 3u);
  EXPECT_LE(apt.ran.size(), 4u);
  EXPECT_THAT(apt.ran, Each("update"));
}

TEST_F(AptUpdaterTest, ListsThatCannotBeFetchedAreTriedAgainLater) {
  apt.failing = {"update"};
  AptUpdater it = updater();
  run(it.changed());
  EXPECT_GE(elapsed(), 20min);
}

// P7: an agent that was restarted waits for the installation of the earlier one, also if it cannot see the lock.
TEST_F(AptUpdaterTest, TheUnitOfAnEarlierAgentBlocks) {
  AptUpdater it = updater();
  apt.running_unit = "haulout-update.service";
  const auto blocked = run(it.blocked_by(soon()));
  ASSERT_TRUE(blocked);
  EXPECT_THAT(*blocked, HasSubstr("haulout-update.service"));
}

TEST_F(AptUpdaterTest, WithoutLockFilesNothingIsKnownToBlock) {
  AptUpdater it = updater();
  const auto blocked = run(it.blocked_by(soon()));
  ASSERT_TRUE(blocked);
  EXPECT_EQ(*blocked, "");
  root.write("var/lib/dpkg/lock-frontend", "");
  EXPECT_EQ(*run(it.blocked_by(soon())), "");
}

}  // namespace
}  // namespace haulout::agent
