#include "agent/service/host_parts.hpp"

#include "agent/backends/file_backend.hpp"
#include "agent/dbus/unit_hooks.hpp"
#include "agent/dbus/unit_programs.hpp"
#include "agent/hooks/hooks.hpp"
#include "tests/agent/service/host_fixture.hpp"

namespace haulout::agent {
namespace {

using ::testing::AllOf;
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

TEST_F(MakeHostTest, KexecIsNamedByWhatItWouldDo) {
  EXPECT_THAT(with({M::kexec, M::systemd})->reboot_methods(), ElementsAre(HasSubstr("logind instead"), "systemd"));
  dir.write("sys/kernel/kexec_loaded", "1\n");
  EXPECT_THAT(with({M::kexec, M::systemd})->reboot_methods(), ElementsAre("kexec into the loaded kernel", "systemd"));
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
  for (const M by_bus : {M::systemd, M::kexec}) {
    config.reboot_methods = {M::command, by_bus};
    EXPECT_TRUE(uses_bus(config, "debian", root));
  }
}

TEST_F(MakeHostTest, HooksAreUnitsWhereSystemdRuns) {
  config.reboot_methods = {M::none};
  EXPECT_NE(dynamic_cast<ChildHooks*>(make_hooks(config, access)->get()), nullptr);
  EXPECT_FALSE(uses_bus(config, "debian", root));
  std::filesystem::create_directories(dir / "run/systemd/system");
  EXPECT_NE(dynamic_cast<UnitHooks*>(make_hooks(config, access)->get()), nullptr);
  EXPECT_TRUE(uses_bus(config, "debian", root));
}

class MakeUpdaterTest : public haulout::testing::HostTest {
 protected:
  Result<MadeUpdater> made(std::string backend) {
    return make_updater(config, {std::move(backend), "", "/etc/os-release names it"}, access, backend_);
  }

 private:
  FileBackend backend_{root, clock, rng, "/run/none"};
};

TEST_F(MakeUpdaterTest, OffByDefault) {
  for (const std::string& backend : backend_names()) {
    const auto updater = made(backend);
    ASSERT_TRUE(updater);
    EXPECT_EQ(updater->updater, nullptr);
  }
}

TEST_F(MakeUpdaterTest, EachBackEndThatCanInstallHasOne) {
  config.update_bundle = "https://example.org/a.raucb";
  using U = UpdateChoice;
  // What the error says to do; empty if there is an updater.
  const std::map<std::string, std::pair<std::string, std::string>> expected{
      {"bootc", {"", ""}},
      {"bottlerocket", {"set update to off", "set update to off"}},
      {"command", {"set update to off", "set update to off"}},
      {"debian", {"", "set update to after-drain"}},
      {"file", {"set update to off", "set update to off"}},
      {"flatcar", {"", ""}},
      {"ostree", {"", ""}},
      {"rauc", {"", ""}},
      {"rpm-ostree", {"", ""}},
      {"sysupdate", {"", ""}},
      {"transactional-update", {"", ""}}};
  for (const std::string& backend : backend_names())
    for (const U choice : {U::after_drain, U::before_drain}) {
      config.update = choice;
      const auto& row = expected.at(backend);
      const std::string& remedy = choice == U::after_drain ? row.first : row.second;
      const auto updater = made(backend);
      ASSERT_EQ(static_cast<bool>(updater), remedy.empty()) << backend;
      if (!updater) {
        EXPECT_THAT(updater.error().message(), AllOf(HasSubstr(remedy), HasSubstr("/etc/os-release names it")));
        continue;
      }
      ASSERT_NE(updater->updater, nullptr) << backend;
      EXPECT_EQ(updater->updater->versions_are_shared(), backend != "transactional-update") << backend;
    }
}

TEST_F(MakeUpdaterTest, WhatAnImageCannotDoIsRefused) {
  config.update = UpdateChoice::after_drain;
  EXPECT_THAT(made("rauc").error().message(), HasSubstr("set update-bundle"));
  config.update_packages = UpdatePackages::security;
  EXPECT_THAT(made("bootc").error().message(), HasSubstr("remove update-packages"));
  EXPECT_TRUE(made("debian"));
  config.update_packages = UpdatePackages::all;
  config.update_services = UpdateServices::reboot;
  EXPECT_THAT(made("bootc").error().message(), HasSubstr("remove update-services"));
  EXPECT_TRUE(made("debian"));
}

TEST_F(MakeUpdaterTest, APinNeedsVersions) {
  config.update = UpdateChoice::after_drain;
  config.pin = "2";
  config.update_bundle = "/a.raucb";
  for (const char* backend : {"debian", "transactional-update"})
    EXPECT_THAT(made(backend).error().message(), HasSubstr("remove pin"));
  for (const char* backend : {"bootc", "ostree", "rpm-ostree", "flatcar", "rauc", "sysupdate"})
    EXPECT_TRUE(made(backend));
}

TEST_F(MakeUpdaterTest, ItsProgramsAreUnitsWhereSystemdRuns) {
  config.update = UpdateChoice::after_drain;
  EXPECT_NE(dynamic_cast<ChildPrograms*>(made("debian")->programs.get()), nullptr);
  std::filesystem::create_directories(dir / "run/systemd/system");
  EXPECT_NE(dynamic_cast<UnitPrograms*>(made("debian")->programs.get()), nullptr);
}

class MakeBackendTest : public haulout::testing::HostTest {
 protected:
  MadeBackend make() {
    const auto found = find_backend(config, root);
    if (!found) throw std::runtime_error(found.error().message());
    auto made = make_backend(config, *found, access);
    if (!made) throw std::runtime_error(made.error().message());
    return *std::move(made);
  }
  Pending pending(const MadeBackend& made) {
    return run(made.backend->pending(clock.now() + std::chrono::seconds(10)));
  }
};

TEST_F(MakeBackendTest, EachThatCanBeNamed) {
  using B = BackendChoice;
  config.sentinel = "/var/lib/sentinel";
  EXPECT_EQ((config.backend = B::file, make().backend->name()), "file");
  config.sentinel.clear();
  config.sentinel_command = {"/bin/true"};
  EXPECT_EQ((config.backend = B::command, make().backend->name()), "command");
  config.sentinel_command.clear();
  EXPECT_EQ((config.backend = B::debian, make().backend->name()), "debian");
  EXPECT_EQ((config.backend = B::flatcar, make().backend->name()), "flatcar");
  EXPECT_EQ((config.backend = B::rpm_ostree, make().backend->name()), "rpm-ostree");
  EXPECT_EQ((config.backend = B::bottlerocket, make().backend->name()), "bottlerocket");
  EXPECT_EQ((config.backend = B::bootc, make().backend->name()), "bootc");
  EXPECT_EQ((config.backend = B::ostree, make().backend->name()), "ostree");
  EXPECT_EQ((config.backend = B::transactional_update, make().backend->name()), "transactional-update");
  EXPECT_EQ((config.backend = B::rauc, make().backend->name()), "rauc");
  EXPECT_EQ((config.backend = B::sysupdate, make().backend->name()), "sysupdate");
}

TEST_F(MakeBackendTest, WhatIsFoundOnTheHost) {
  dir.write("etc/os-release", "ID=opensuse-microos\n");
  dir.write("run/reboot-needed", "a new snapshot\n");
  const MadeBackend made = make();
  EXPECT_EQ(made.backend->name(), "file");
  EXPECT_THAT(pending(made).reasons, ElementsAre("a new snapshot"));
  config.update = UpdateChoice::before_drain;
  EXPECT_EQ(make().backend->name(), "transactional-update");
}

TEST_F(MakeBackendTest, NothingFoundSaysWhatHelps) {
  const auto found = find_backend(config, root);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message(), HasSubstr("--backend"));
}

TEST_F(MakeBackendTest, TheSocketIsTheHosts) {
  config.backend = BackendChoice::bottlerocket;
  const MadeBackend made = make();
  EXPECT_THAT(pending(made).problem, HasSubstr(dir / "run/api.sock"));
}

// On plain Debian, no package writes /run/reboot-required for a new kernel. So the back end compares the installed
// kernels with the running one, unless the hook of unattended-upgrades, which writes the file, is installed.
TEST_F(MakeBackendTest, KernelsAreComparedWhereNobodyLeavesASentinel) {
  config.backend = BackendChoice::debian;
  dir.write("boot/vmlinuz-6.1.0-18-amd64", "");
  dir.write("boot/vmlinuz-6.1.0-21-amd64", "");
  dir.write("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  EXPECT_EQ(pending(make()).need, Need::yes);

  dir.write("etc/kernel/postinst.d/unattended-upgrades", "");
  EXPECT_EQ(pending(make()).need, Need::no);
}

// The host has an empty /boot, for example because it boots from the network. So no kernel is newer than the running
// one.
TEST_F(MakeBackendTest, WithoutKernelsThereIsNothingToCompare) {
  config.backend = BackendChoice::debian;
  std::filesystem::create_directories(dir / "boot");
  dir.write("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  EXPECT_EQ(pending(make()).need, Need::no);
}

// P4: a container without the host's /boot cannot determine which kernels are installed.
TEST_F(MakeBackendTest, KernelsThatCannotBeSeenAreUnknown) {
  config.backend = BackendChoice::debian;
  dir.write("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  const Pending answer = pending(make());
  EXPECT_EQ(answer.need, Need::unknown);
  EXPECT_THAT(answer.problem, HasSubstr("/boot"));
  dir.write("run/reboot-required", "");
  EXPECT_EQ(pending(make()).need, Need::yes) << "that is known";
  std::filesystem::remove(dir / "run/reboot-required");

  dir.write("etc/kernel/postinst.d/update-notifier", "");
  EXPECT_EQ(pending(make()).need, Need::no) << "whoever leaves a sentinel has left none";
}

TEST_F(MakeBackendTest, ARunningKernelThatCannotBeSeenIsUnknown) {
  config.backend = BackendChoice::debian;
  dir.write("boot/vmlinuz-6.1.0-18-amd64", "");
  const Pending answer = pending(make());
  EXPECT_EQ(answer.need, Need::unknown);
  EXPECT_THAT(answer.problem, HasSubstr("osrelease"));
}

TEST_F(MakeBackendTest, ASentinelCommandIsAskedAsOftenAsConfigured) {
  config.backend = BackendChoice::command;
  config.sentinel_command = {"/bin/true"};
  config.sentinel_interval = std::chrono::hours(1);
  const MadeBackend made = make();
  const TimePoint begin = clock.now();
  run(made.backend->changed());
  EXPECT_GE(clock.now() - begin, std::chrono::minutes(48));
  EXPECT_LE(clock.now() - begin, std::chrono::minutes(72));
}

}  // namespace
}  // namespace haulout::agent
