#include "agent/dbus/logind.hpp"

#include <unistd.h>

#include <filesystem>

#include "tests/agent/dbus/bus_fixture.hpp"
#include "tests/support/lock_holder.hpp"

namespace haulout::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LogindHostTest : public LiveBusTest {
 protected:
  using LiveBusTest::LiveBusTest;

  agent::LogindHost host{bus, agent::HostRoot(root.path()), {"logind", "systemd"}};
  agent::LogindHost by_systemd{bus, agent::HostRoot(root.path()), {"systemd"}};
  agent::LogindHost by_kexec{bus, agent::HostRoot(root.path()), {"kexec", "systemd"}};

  Result<> can_reboot(agent::Host& which) {
    std::optional<Result<>> out;
    with_services([&](TaskGroup&) -> awaitable<void> { out = co_await which.can_reboot(soon()); });
    return *out;
  }
  Result<std::string> blocked_by(agent::Host& which) {
    std::optional<Result<std::string>> out;
    with_services([&](TaskGroup&) -> awaitable<void> { out = co_await which.blocked_by(soon()); });
    return *out;
  }
  Result<> reboot(std::size_t method) { return reboot(host, method); }
  Result<> reboot(agent::Host& which, std::size_t method) {
    std::optional<Result<>> out;
    with_services([&](TaskGroup&) -> awaitable<void> { out = co_await which.reboot(method, soon()); });
    return *out;
  }
  Result<agent::MachineStart> started() {
    std::optional<Result<agent::MachineStart>> out;
    with_services([&](TaskGroup&) -> awaitable<void> { out = co_await host.started(soon()); });
    return *out;
  }
  Result<bool> boot_complete() {
    std::optional<Result<bool>> out;
    with_services([&](TaskGroup&) -> awaitable<void> { out = co_await host.boot_complete(soon()); });
    return *out;
  }

  bool with_systemd = true;

 private:
  void with_services(std::function<awaitable<void>(TaskGroup&)> body) {
    std::vector<FakeService*> services{&login1};
    if (with_systemd) services.push_back(&systemd1);
    for (FakeService* const service : services) service->connect(daemon.address());
    run(services, std::move(body));
  }
};

TEST_F(LogindHostTest, LogindSaysYes) {
  EXPECT_TRUE(can_reboot(host));
  EXPECT_THAT(host.reboot_methods(), ElementsAre("logind", "systemd"));
}

TEST_F(LogindHostTest, LogindSaysSomethingElse) {
  login1.can_reboot = "challenge";
  const Error error = error_of(can_reboot(host));
  EXPECT_EQ(error.code(), Errc::unavailable);
  EXPECT_THAT(error.message(), HasSubstr("uid " + std::to_string(::geteuid())));
}

TEST_F(LogindHostTest, SomebodyBlocksIt) {
  login1.inhibitors = {FakeLogin1::Inhibitor{"shutdown:sleep", "backup", "a backup runs", "block", 0u, 4711u}};
  EXPECT_THAT(error_of(can_reboot(host)).message(), HasSubstr("backup"));
}

// A lock of mode block-weak also blocks root, and the property BlockInhibited does not report it.
TEST_F(LogindHostTest, AWeakLockBlocksIt) {
  login1.inhibitors = {FakeLogin1::Inhibitor{"shutdown", "editor", "unsaved work", "block-weak", 1000u, 4711u}};
  EXPECT_THAT(blocked_by(host).value(), HasSubstr("editor"));
}

TEST_F(LogindHostTest, OthersBlockOtherThings) {
  login1.inhibitors = {FakeLogin1::Inhibitor{"sleep", "nm", "wifi", "block", 0u, 1u}};
  EXPECT_TRUE(can_reboot(host));
}

class ConfinedHostTest : public LogindHostTest {
 protected:
  ConfinedHostTest() : LogindHostTest("<deny send_destination=\"org.freedesktop.login1\"/>") {}
};

TEST_F(ConfinedHostTest, ABusThatForbidsItIsATrapWithAWayOut) {
  const Error error = error_of(can_reboot(host));
  EXPECT_EQ(error.code(), Errc::unavailable);
  EXPECT_THAT(error.message(), HasSubstr("appArmorProfile"));
  EXPECT_THAT(login1.calls, ElementsAre());
}

TEST_F(LogindHostTest, SystemdLetsOnlyRootReboot) {
  const auto permitted = can_reboot(by_systemd);
  EXPECT_EQ(permitted.has_value(), ::geteuid() == 0);
}

TEST_F(LogindHostTest, WithoutSystemdItsMethodIsNone) {
  with_systemd = false;
  EXPECT_EQ(error_of(can_reboot(by_systemd)).code(), Errc::unavailable);
}

TEST_F(LogindHostTest, NobodyBlocksIt) {
  EXPECT_EQ(blocked_by(host).value(), "");
}

TEST_F(LogindHostTest, SomebodyBlocksItByNow) {
  login1.inhibitors = {FakeLogin1::Inhibitor{"shutdown", "apt", "packages are installed", "block", 0u, 4711u}};
  EXPECT_THAT(blocked_by(host).value(), HasSubstr("apt"));
}

// The method `systemd` does not check inhibitor locks. A user may choose it for that reason.
TEST_F(LogindHostTest, SystemdAloneIsBlockedByNobody) {
  login1.inhibitors = {FakeLogin1::Inhibitor{"shutdown", "apt", "packages are installed", "block", 0u, 4711u}};
  EXPECT_EQ(blocked_by(by_systemd).value(), "");
}

// A program that installs packages may hold no inhibitor lock, but it holds dpkg's lock. That blocks the reboot, too.
TEST_F(LogindHostTest, AProgramThatInstallsPackagesBlocksIt) {
  const haulout::testing::LockHolder dpkg(root.write("var/lib/dpkg/lock", ""));
  EXPECT_THAT(blocked_by(host).value(), HasSubstr(std::to_string(dpkg.pid())));
}

TEST_F(LogindHostTest, AProgramThatInstallsPackagesBlocksSystemdAlone) {
  const haulout::testing::LockHolder dpkg(root.write("var/lib/dpkg/lock", ""));
  EXPECT_THAT(blocked_by(by_systemd).value(), HasSubstr(std::to_string(dpkg.pid())));
}

// If the lock of dpkg cannot be read, inhibitor locks still block the reboot.
TEST_F(LogindHostTest, AnUnreadableLockHidesNoInhibitor) {
  root.write("var/lib/dpkg/status", "");
  std::filesystem::create_symlink("lock-frontend", root / "var/lib/dpkg/lock-frontend");
  login1.inhibitors = {FakeLogin1::Inhibitor{"shutdown", "apt", "packages are installed", "block", 0u, 4711u}};
  EXPECT_THAT(blocked_by(host).value(), HasSubstr("apt"));
}

// P4: an answer that cannot be read does not mean that there is no inhibitor lock.
TEST_F(LogindHostTest, WhetherSomebodyBlocksItCannotBeTold) {
  login1.numbers_for_words = true;
  EXPECT_FALSE(blocked_by(host));
}

// Flag 1 makes logind check inhibitor locks even for root. Another flag would make logind skip them.
TEST_F(LogindHostTest, RebootsWithTheFlagThatHoldsRootToInhibitors) {
  EXPECT_TRUE(reboot(0));
  EXPECT_THAT(login1.calls, ElementsAre("RebootWithFlags(1)"));
}

TEST_F(LogindHostTest, RebootsAnOlderLogindWithoutAskingAHuman) {
  login1.with_flags = false;
  EXPECT_TRUE(reboot(0));
  EXPECT_THAT(login1.calls, ElementsAre("Reboot(false)"));
}

// Flag 2 is the kexec, beside flag 1.
TEST_F(LogindHostTest, KexecIsAskedForWhenAKernelIsLoaded) {
  root.write("sys/kernel/kexec_loaded", "1\n");
  EXPECT_TRUE(reboot(by_kexec, 0));
  EXPECT_THAT(login1.calls, ElementsAre("RebootWithFlags(3)"));
  EXPECT_THAT(by_kexec.reboot_methods(), ElementsAre("kexec into the loaded kernel", "systemd"));
}

TEST_F(LogindHostTest, WithoutALoadedKernelKexecIsAnOrdinaryReboot) {
  root.write("sys/kernel/kexec_loaded", "0\n");
  EXPECT_TRUE(reboot(by_kexec, 0));
  EXPECT_THAT(login1.calls, ElementsAre("RebootWithFlags(1)"));
  EXPECT_THAT(by_kexec.reboot_methods(), ElementsAre(HasSubstr("no kernel is loaded"), "systemd"));
}

// A loaded kernel changes nothing for those who have not chosen kexec.
TEST_F(LogindHostTest, WithoutTheMethodALoadedKernelIsNotUsed) {
  root.write("sys/kernel/kexec_loaded", "1\n");
  EXPECT_TRUE(reboot(0));
  EXPECT_THAT(login1.calls, ElementsAre("RebootWithFlags(1)"));
  EXPECT_THAT(host.reboot_methods(), ElementsAre("logind", "systemd"));
}

TEST_F(LogindHostTest, ALogindThatDoesNotKnowTheFlagRebootsInTheOrdinaryWay) {
  root.write("sys/kernel/kexec_loaded", "1\n");
  login1.knows_kexec = false;
  EXPECT_TRUE(reboot(by_kexec, 0));
  EXPECT_THAT(login1.calls, ElementsAre("RebootWithFlags(3)", "RebootWithFlags(1)"));
  EXPECT_THAT(by_kexec.reboot_methods(), ElementsAre(HasSubstr("this logind is too old"), "systemd"));
}

TEST_F(LogindHostTest, ALogindWithoutFlagsRebootsInTheOrdinaryWay) {
  root.write("sys/kernel/kexec_loaded", "1\n");
  login1.with_flags = false;
  EXPECT_TRUE(reboot(by_kexec, 0));
  EXPECT_THAT(login1.calls, ElementsAre("Reboot(false)"));
  EXPECT_THAT(by_kexec.reboot_methods(), ElementsAre(HasSubstr("this logind is too old"), "systemd"));
}

// What blocks logind also blocks a kexec.
TEST_F(LogindHostTest, SomebodyBlocksAKexec) {
  root.write("sys/kernel/kexec_loaded", "1\n");
  login1.inhibitors = {FakeLogin1::Inhibitor{"shutdown", "apt", "packages are installed", "block", 0u, 4711u}};
  EXPECT_THAT(blocked_by(by_kexec).value(), HasSubstr("apt"));
}

TEST_F(LogindHostTest, LogindIsAskedWhetherItPermitsAKexec) {
  login1.can_reboot = "no";
  EXPECT_THAT(error_of(can_reboot(by_kexec)).message(), HasSubstr("CanReboot: no"));
}

// A refused kexec is no reason to reboot in another way.
TEST_F(LogindHostTest, ARefusedKexecIsAFailure) {
  root.write("sys/kernel/kexec_loaded", "1\n");
  login1.refusal = dbus_error("org.freedesktop.DBus.Error.AccessDenied", "no");
  EXPECT_FALSE(reboot(by_kexec, 0));
  EXPECT_THAT(login1.calls, ElementsAre("RebootWithFlags(3)"));
}

TEST_F(LogindHostTest, ARefusedRebootIsAFailureAndNotTriedInAnotherWay) {
  login1.refusal = dbus_error("org.freedesktop.DBus.Error.AccessDenied", "no");
  EXPECT_EQ(error_of(reboot(0)).code(), Errc::unavailable);
  EXPECT_THAT(login1.calls, ElementsAre("RebootWithFlags(1)"));
  EXPECT_THAT(systemd1.calls, ElementsAre());
}

TEST_F(LogindHostTest, TheSecondMethodIsSystemd) {
  EXPECT_TRUE(reboot(1));
  EXPECT_THAT(systemd1.calls, ElementsAre("Reboot"));
  EXPECT_THAT(login1.calls, ElementsAre());
}

// The start of user space shows whether the machine has rebooted. The agent asks systemd for it, because the sandbox of
// the package's unit hides /proc/1.
TEST_F(LogindHostTest, SystemdTellsWhenItBegan) {
  systemd1.userspace_began = 4711;
  EXPECT_EQ(*started(), (agent::MachineStart{"systemd", 4711}));
}

TEST_F(LogindHostTest, WithoutSystemdOnTheBusTheStartIsUnknown) {
  with_systemd = false;
  EXPECT_FALSE(started());
}

TEST_F(LogindHostTest, ThereIsNoThirdMethod) {
  EXPECT_EQ(error_of(reboot(2)).code(), Errc::invalid);
}

TEST_F(LogindHostTest, TheBootIsCompleteWhenSystemdSaysSo) {
  EXPECT_TRUE(boot_complete().value());
}

TEST_F(LogindHostTest, ABootThatIsUnderWayIsNotComplete) {
  systemd1.system_state = "starting";
  EXPECT_FALSE(boot_complete().value());
}

TEST_F(LogindHostTest, WithoutSystemdThereIsNothingToWaitFor) {
  with_systemd = false;
  EXPECT_TRUE(boot_complete().value());
}

TEST_F(LogindHostTest, ASystemdThatIsNotYetOnTheBusIsNotComplete) {
  with_systemd = false;
  std::filesystem::create_directories(root / "run/systemd/system");
  EXPECT_FALSE(boot_complete().value());
}

}  // namespace
}  // namespace haulout::testing
