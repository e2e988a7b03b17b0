#include "agent/backends/debian_backend.hpp"

#include "tests/agent/backends/watching_fixture.hpp"

namespace haulout::agent {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;
using Reasons = std::vector<std::string>;

TEST(PackageReasons, EachOnceInOrderAndNotTooMany) {
  EXPECT_EQ(package_reasons("linux-base\nlibc6\nlinux-base\n\n  dbus \n", false),
            (Reasons{"linux-base", "libc6", "dbus"}));
  EXPECT_EQ(package_reasons("", false), Reasons{});
  EXPECT_EQ(package_reasons("\n \n", false), Reasons{});
  EXPECT_EQ(package_reasons("last", false), Reasons{"last"});
  std::string many;
  for (int i = 0; i < 10; ++i) many += "p" + std::to_string(i) + "\n";
  EXPECT_EQ(package_reasons(many, false).size(), 10u);
  EXPECT_EQ(package_reasons(many, false).back(), "p9");
  const Reasons capped = package_reasons(many + "p10\np11\np12\n", false);
  EXPECT_EQ(capped.size(), 11u);
  EXPECT_EQ(capped.back(), "and 3 more");
}

TEST(PackageReasons, OfABeginningTheLastLineIsHalfAndTheRestUnknown) {
  EXPECT_EQ(package_reasons("libc6\nlinux-ba", true), (Reasons{"libc6", "and at least 1 more"}));
  EXPECT_EQ(package_reasons("one-endless-name", true), Reasons{});
}

class DebianBackendTest : public WatchingTest {
 protected:
  DebianBackend backend{root, clock, rng, {}};
  DebianBackend with_kernel{root, clock, rng, {.running_kernel = "6.1.0-18-amd64"}};

  DebianBackendTest() { fs::create_directories(dir / "run"); }
};

TEST_F(DebianBackendTest, DetectsDebianAndItsLike) {
  EXPECT_TRUE(DebianBackend::detect({.id = "debian"}));
  EXPECT_TRUE(DebianBackend::detect({.id = "ubuntu", .id_like = {"debian"}}));
  EXPECT_FALSE(DebianBackend::detect({.id = "fedora", .id_like = {"rhel"}}));
  EXPECT_EQ(backend.name(), "debian");
}

TEST_F(DebianBackendTest, TheFileWithThePackagesThatAskedForIt) {
  EXPECT_EQ(pending(backend), Pending{.need = Need::no});
  dir.write("run/reboot-required.pkgs", "libc6\n");
  EXPECT_EQ(pending(backend).need, Need::no) << "the list alone asks for nothing";
  dir.write("run/reboot-required", "*** System restart required ***\n");
  EXPECT_EQ(pending(backend), (Pending{.need = Need::yes, .reasons = {"libc6"}}));
  fs::remove(dir / "run/reboot-required.pkgs");
  EXPECT_THAT(pending(backend).reasons, ElementsAre("*** System restart required ***"));
}

TEST_F(DebianBackendTest, AListThatCannotBeReadCostsOnlyTheReasons) {
  dir.write("run/reboot-required", "");
  fs::create_directories(dir / "run/reboot-required.pkgs");
  const Pending answer = pending(backend);
  EXPECT_EQ(answer.need, Need::yes);
  EXPECT_EQ(answer.reasons.size(), 1u);
}

TEST_F(DebianBackendTest, AnEndlessListIsReadInPart) {
  dir.write("run/reboot-required", "");
  std::string list;
  for (int i = 0; i < 100'000; ++i) list += "package-" + std::to_string(i % 12) + "\n";
  dir.write("run/reboot-required.pkgs", list);
  EXPECT_EQ(pending(backend).reasons.size(), 11u);
  EXPECT_THAT(pending(backend).reasons.back(), HasSubstr("at least 2 more"));
}

TEST_F(DebianBackendTest, WhatCannotBeReadIsUnknown) {
  fs::create_directories(dir / "run/reboot-required");
  const Pending answer = pending(backend);
  EXPECT_EQ(answer.need, Need::unknown);
  EXPECT_THAT(answer.problem, HasSubstr("reboot-required"));
}

TEST_F(DebianBackendTest, VarRunIsALinkOrADirectoryOfItsOwn) {
  fs::create_directories(dir / "var");
  fs::create_symlink("/run", dir / "var/run");
  dir.write("run/reboot-required", "once");
  EXPECT_THAT(pending(backend).reasons, ElementsAre("once"));

  fs::remove(dir / "var/run");
  fs::remove(dir / "run/reboot-required");
  dir.write("var/run/reboot-required", "old place");
  EXPECT_THAT(pending(backend).reasons, ElementsAre("old place"));
  fs::remove(dir / "var/run/reboot-required");
  EXPECT_EQ(pending(backend).need, Need::no);
  EXPECT_EQ(woken_after(backend, [&] { dir.write("var/run/reboot-required", ""); }), a_minute);
}

TEST_F(DebianBackendTest, WakesForFileListAndKernel) {
  dir.write("boot/vmlinuz-6.1.0-18-amd64", "");
  for (const char* file : {"run/reboot-required.pkgs", "run/reboot-required", "boot/vmlinuz-6.1.0-20-amd64"}) {
    pending(with_kernel);
    EXPECT_EQ(woken_after(with_kernel, [&] { dir.write(file, "x"); }), a_minute) << file;
  }
}

TEST_F(DebianBackendTest, ANewerKernelThanTheRunningOne) {
  dir.write("boot/vmlinuz-6.1.0-18-amd64", "");
  EXPECT_EQ(pending(with_kernel), Pending{.need = Need::no});
  dir.write("boot/vmlinuz-6.1.0-20-amd64", "");
  EXPECT_EQ(pending(with_kernel),
            (Pending{.need = Need::yes, .reasons = {"kernel 6.1.0-20-amd64 is installed, 6.1.0-18-amd64 runs"}}));
  EXPECT_EQ(pending(backend).need, Need::no) << "without the option nobody looks";
  dir.write("run/reboot-required", "");
  dir.write("run/reboot-required.pkgs", "libc6\n");
  EXPECT_THAT(pending(with_kernel).reasons, ElementsAre("libc6"));
}

TEST_F(DebianBackendTest, WithoutKernelsToCompareItIsUnknown) {
  EXPECT_EQ(pending(with_kernel).need, Need::unknown) << "no /boot";
  fs::create_directories(dir / "boot");
  EXPECT_EQ(pending(with_kernel).need, Need::unknown) << "an empty /boot is one that was not mounted";
  EXPECT_FALSE(pending(with_kernel).problem.empty());
  dir.write("run/reboot-required", "");
  EXPECT_EQ(pending(with_kernel).need, Need::yes);
}

TEST_F(DebianBackendTest, AKernelDecidesWhereTheFileCannotBeRead) {
  fs::create_directories(dir / "run/reboot-required");
  dir.write("boot/vmlinuz-6.1.0-18-amd64", "");
  EXPECT_EQ(pending(with_kernel).need, Need::unknown);
  dir.write("boot/vmlinuz-6.1.0-20-amd64", "");
  EXPECT_EQ(pending(with_kernel).need, Need::yes);
}

}  // namespace
}  // namespace haulout::agent
