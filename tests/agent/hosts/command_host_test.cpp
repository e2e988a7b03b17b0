// Tests the host with real child processes: scripts in the test's own directory.
#include "agent/hosts/hosts.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <optional>

#include "tests/k8s/temp_dir.hpp"
#include "tests/support/lock_holder.hpp"
#include "tests/support/real_time.hpp"

namespace haulout::agent {
namespace {
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class CommandHostTest : public haulout::testing::RealTimeTest {
 protected:
  haulout::testing::TempDir dir;

  Result<> reboot(const HostCommand& command, TimePoint deadline) {
    CommandHost host(HostRoot(dir.path()), clock, command);
    return run(host.reboot(0, deadline));
  }
  Result<> reboot_by(const std::string& body) { return reboot({dir.write_script("reboot", body)}, soon()); }
};

TEST_F(CommandHostTest, RunsItWithItsArgumentsAndNoShell) {
  const std::string script = dir.write_script("reboot", R"(printf '%s|' "$@" > "$1")");
  const std::string seen = dir / "seen";
  const std::string evil = "; touch " + dir / "evil" + " $(touch " + dir / "evil" + ")";
  ASSERT_TRUE(reboot({script, {seen, evil, "a  b", ""}}, soon()));
  std::ifstream in(seen);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), seen + "|" + evil + "|a  b||");
  EXPECT_FALSE(fs::exists(dir / "evil"));
}

TEST_F(CommandHostTest, AFailureNamesTheProgramAndWhatItSaid) {
  const auto failed = reboot_by("echo no power >&2\nexit 3");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Errc::unavailable);
  EXPECT_THAT(failed.error().message(), AllOf(HasSubstr(dir / "reboot"), HasSubstr("3"), HasSubstr("no power")));
}

TEST_F(CommandHostTest, OnlyTheEndOfALongStderrIsKept) {
  const auto failed =
      reboot_by("head -c 100000 /dev/zero | tr '\\0' x >&2\nprintf '\\033[31mlast\\377words' >&2\nexit 1");
  ASSERT_FALSE(failed);
  EXPECT_LT(failed.error().message().size(), 600u);
  EXPECT_THAT(failed.error().message(), AllOf(HasSubstr("last?words"), Not(HasSubstr("\033"))));
}

TEST_F(CommandHostTest, ASignalIsAFailure) {
  const auto killed = reboot_by("kill -9 $$");
  ASSERT_FALSE(killed);
  EXPECT_EQ(killed.error().code(), Errc::unavailable);
  EXPECT_THAT(killed.error().message(), HasSubstr("signal 9"));
}

TEST_F(CommandHostTest, AProgramThatCannotBeStartedIsAFailure) {
  const std::string no_interpreter = dir.write("strange", "not a program");
  fs::permissions(no_interpreter, fs::perms::owner_all);
  for (const std::string& program : {dir / "missing", no_interpreter, dir.path()}) {
    const auto failed = reboot({program}, soon());
    ASSERT_FALSE(failed) << program;
    EXPECT_EQ(failed.error().code(), Errc::unavailable);
    EXPECT_THAT(failed.error().message(), HasSubstr(program));
  }
}

TEST_F(CommandHostTest, TheDeadlineEndsIt) {
  const auto late = reboot({dir.write_script("reboot", "sleep 1000")}, clock.now() + 50ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::timeout);
  // The advice to run it by hand would reboot the machine without a drain.
  EXPECT_THAT(late.error().message(), AllOf(HasSubstr("exceeded its time limit"), Not(HasSubstr("yourself"))));
  EXPECT_THAT(late.error().message(), HasSubstr(dir / "reboot"));
}

// The program may be in an operation that must not be interrupted. So at the deadline it gets SIGTERM first, not
// SIGKILL.
TEST_F(CommandHostTest, AtTheDeadlineItIsAskedToEndFirst) {
  const std::string seen = dir / "seen";
  const std::string script =
      dir.write_script("reboot", "trap 'echo ended > \"" + seen + "\"; exit 0' TERM\nsleep 1000 & wait");
  const auto late = reboot({script}, clock.now() + 300ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::timeout);
  EXPECT_TRUE(fs::exists(seen));
}

// P4: a reboot in the middle of an installation would leave packages that are not configured, or a boot loader that
// does not know the new kernel.
TEST_F(CommandHostTest, AProgramThatInstallsPackagesBlocksTheReboot) {
  const std::string lock = dir.write("var/lib/dpkg/lock-frontend", "");
  CommandHost host(HostRoot(dir.path()), clock, {dir.write_script("reboot", "")});
  EXPECT_EQ(*run(host.blocked_by(soon())), "");
  std::optional<haulout::testing::LockHolder> apt(lock);
  EXPECT_THAT(*run(host.blocked_by(soon())),
              AllOf(HasSubstr(std::to_string(apt->pid())), HasSubstr("/var/lib/dpkg/lock-frontend")));
  apt.reset();
  EXPECT_EQ(*run(host.blocked_by(soon())), "");
}

TEST_F(CommandHostTest, ThereIsOneMethod) {
  CommandHost host(HostRoot(dir.path()), clock, {dir.write_script("reboot", "")});
  EXPECT_EQ(host.reboot_methods().size(), 1u);
  const auto second = run(host.reboot(1, soon()));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::invalid);
}

}  // namespace
}  // namespace haulout::agent
