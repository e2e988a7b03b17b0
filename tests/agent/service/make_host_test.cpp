#include "agent/service/make_host.hpp"

#include "agent/dbus/unit_hooks.hpp"
#include "agent/hooks/hook_programs.hpp"
#include "tests/agent/service/host_fixture.hpp"

namespace haulout::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using M = RebootMethod;

class MakeHostTest : public haulout::testing::HostTest {
 protected:
  std::unique_ptr<Host> with(std::vector<RebootMethod> methods) {
    config.reboot_methods = std::move(methods);
    return make_host(config, access);
  }
};

TEST_F(MakeHostTest, TheWaysToRebootInTheirOrder) {
  config.reboot_command = {"/sbin/reboot", "-f"};
  EXPECT_THAT(with({M::logind, M::systemd})->reboot_methods(), ElementsAre("logind", "systemd"));
  EXPECT_THAT(with({M::command})->reboot_methods(), ElementsAre("command /sbin/reboot"));
  EXPECT_THAT(with({M::none})->reboot_methods(), IsEmpty());
  EXPECT_THAT(with({M::systemd, M::command, M::logind})->reboot_methods(),
              ElementsAre("systemd", "command /sbin/reboot", "logind"));
}

TEST_F(MakeHostTest, EachWayIsAskedOfItsHost) {
  config.reboot_command = {dir / "missing"};
  const auto host = with({M::systemd, M::command});
  const TimePoint deadline = clock.now() + std::chrono::seconds(10);
  const auto by_bus = run(host->reboot(0, deadline));
  ASSERT_FALSE(by_bus);
  EXPECT_THAT(by_bus.error().message(), HasSubstr("system bus"));
  const auto none = run(host->reboot(2, deadline));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Errc::invalid);
}

TEST_F(MakeHostTest, FilesAreTheHosts) {
  dir.write("proc/sys/kernel/random/boot_id", "boot-1\n");
  config.reboot_command = {"/sbin/reboot"};
  for (const auto& methods : {std::vector{M::logind}, {M::command}, {M::none}, {M::command, M::systemd}}) {
    const auto host = with(methods);
    EXPECT_EQ(*host->boot_id(), "boot-1");
    EXPECT_TRUE(host->show_ready(true));
    EXPECT_TRUE(std::filesystem::exists(dir / "run/haulout/ready"));
    EXPECT_TRUE(host->show_ready(false));
  }
}

TEST_F(MakeHostTest, WhoSpeaksDBus) {
  config.reboot_methods = {M::none};
  EXPECT_FALSE(uses_bus(config, "debian", root));
  EXPECT_TRUE(uses_bus(config, "flatcar", root));
  config.reboot_methods = {M::command, M::systemd};
  EXPECT_TRUE(uses_bus(config, "debian", root));
}

TEST_F(MakeHostTest, HooksAreUnitsWhereSystemdRuns) {
  config.reboot_methods = {M::none};
  EXPECT_NE(dynamic_cast<ChildHooks*>(make_hooks(config, access)->get()), nullptr);
  EXPECT_FALSE(uses_bus(config, "debian", root));
  std::filesystem::create_directories(dir / "run/systemd/system");
  EXPECT_NE(dynamic_cast<UnitHooks*>(make_hooks(config, access)->get()), nullptr);
  EXPECT_TRUE(uses_bus(config, "debian", root));
}

}  // namespace
}  // namespace haulout::agent
