// Tests hosts without a command of their own, and the look-up of the program of a host that has a command.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "agent/hosts/hosts.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

class HostsTest : public haulout::testing::VirtualTimeTest {
 protected:
  haulout::testing::TempDir dir;
  const HostRoot root{dir.path()};
};

TEST_F(HostsTest, NoneHasNoWayToRebootAndNothingToForbidIt) {
  NoneHost host(root);
  EXPECT_THAT(host.reboot_methods(), IsEmpty());
  EXPECT_TRUE(run(host.can_reboot(TimePoint::max())));
  const auto rebooted = run(host.reboot(0, TimePoint::max()));
  ASSERT_FALSE(rebooted);
  EXPECT_EQ(rebooted.error().code(), Errc::invalid);
}

// The agent uses the reboot command when the reboot by logind fails. The command does not check inhibitor locks itself.
// So a lock that blocks logind blocks the whole host.
TEST_F(HostsTest, WhoBlocksOneWayBlocksAllOfThem) {
  struct Blocked final : FileHost {
    using FileHost::FileHost;
    std::vector<std::string> reboot_methods() const override { return {"logind"}; }
    Task<> can_reboot(TimePoint) override { co_return Result<>(); }
    Task<std::string> blocked_by(TimePoint) override { co_return who; }
    Task<> reboot(std::size_t, TimePoint) override { co_return Result<>(); }
    Result<std::string> who = std::string("apt");
  };
  auto blocked = std::make_unique<Blocked>(root);
  Blocked& asked = *blocked;
  std::vector<std::unique_ptr<Host>> hosts;
  hosts.push_back(std::move(blocked));
  hosts.push_back(std::make_unique<CommandHost>(root, clock, HostCommand{"/bin/true"}));
  JoinedHost host(std::move(hosts));
  EXPECT_EQ(*run(host.blocked_by(TimePoint::max())), "apt");
  asked.who = std::string();
  EXPECT_EQ(*run(host.blocked_by(TimePoint::max())), "");
  asked.who = Error(Errc::timeout, "no answer");
  EXPECT_FALSE(run(host.blocked_by(TimePoint::max())));
}

TEST_F(HostsTest, FilesAreTheHosts) {
  dir.write("proc/sys/kernel/random/boot_id", "boot-1\n");
  NoneHost host(root);
  EXPECT_EQ(*host.boot_id(), "boot-1");
  EXPECT_TRUE(*run(host.boot_complete(TimePoint::max())));
  EXPECT_TRUE(host.show_ready(true));
  EXPECT_TRUE(fs::exists(dir / "run/haulout/ready"));
  EXPECT_TRUE(host.show_ready(false));
  EXPECT_FALSE(fs::exists(dir / "run/haulout/ready"));
}

TEST_F(HostsTest, CanRebootAsksWhetherTheProgramIsThere) {
  const std::string good = dir.write_script("reboot", "exit 7");
  CommandHost host(root, clock, {good});
  EXPECT_THAT(host.reboot_methods(), ElementsAre(HasSubstr(good)));
  EXPECT_TRUE(run(host.can_reboot(TimePoint::max())));

  fs::create_directories(dir / "directory");
  for (const std::string& bad : {dir / "missing", dir.write("plain", "#!/bin/sh\n"), dir / "directory"}) {
    CommandHost broken(root, clock, {bad});
    const auto can = run(broken.can_reboot(TimePoint::max()));
    ASSERT_FALSE(can) << bad;
    EXPECT_EQ(can.error().code(), Errc::unavailable);
    EXPECT_THAT(can.error().message(), HasSubstr(bad));
  }
}

TEST_F(HostsTest, ProgramsAreFoundAsExecvpFindsThem) {
  const std::string first = dir.write_script("one/tool", "");
  const std::string second = dir.write_script("two/tool", "");
  dir.write("zero/tool", "not executable");
  fs::create_directories(dir / "three/tool");
  const auto search = [&](const std::string& names) {
    std::string path;
    for (const char name : names) {
      const std::map<char, std::string> places = {
          {'0', "zero"}, {'1', "one"}, {'2', "two"}, {'3', "three"}, {'x', "no"}};
      path += (path.empty() ? "" : ":") + dir / places.at(name);
    }
    const auto found = find_program("tool", path);
    return found ? *found : "error";
  };
  EXPECT_EQ(search("12"), first);
  EXPECT_EQ(search("21"), second);
  EXPECT_EQ(search("x3012"), first);
  EXPECT_EQ(search("x30"), "error");
  EXPECT_FALSE(find_program("tool", ""));
  EXPECT_FALSE(find_program("", dir / "one"));
  EXPECT_EQ(*find_program(first, ""), first) << "a path is not looked up";
}

}  // namespace
}  // namespace haulout::agent
