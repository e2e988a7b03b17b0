#include "agent/backends/detect.hpp"

#include <gmock/gmock.h>

#include "tests/k8s/temp_dir.hpp"

namespace haulout::agent {
namespace {
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace fs = std::filesystem;

class DetectTest : public ::testing::Test {
 protected:
  haulout::testing::TempDir dir;
  const HostRoot root{dir.path()};
};

TEST_F(DetectTest, FromOsRelease) {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"ID=debian", "debian", ""},
      {"ID=ubuntu\nID_LIKE=debian", "debian", ""},
      {"ID=bottlerocket", "bottlerocket", ""},
      {"ID=flatcar\nID_LIKE=coreos", "flatcar", ""},
      // Recent versions of Flatcar quote all values. (The agent of the Flatcar Linux Update Operator cannot read that.)
      {"NAME=\"Flatcar Container Linux by Kinvolk\"\nID=\"flatcar\"\nID_LIKE=\"coreos\"\nVERSION=\"4459.2.1\"\n"
       "VERSION_ID=\"4459.2.1\"\nBUILD_ID=\"2025-11-18-1923\"\nSYSEXT_LEVEL=\"1.0\"\nPRETTY_NAME=\"Flatcar Container "
       "Linux by Kinvolk 4459.2.1 (Oklo)\"\nANSI_COLOR=\"38;5;75\"\nFLATCAR_BOARD=\"amd64-usr\"",
       "flatcar", ""},
      {"ID=\"opensuse-microos\"\nID_LIKE=\"suse opensuse\"", "file", "/run/reboot-needed"},
      {"ID=sl-micro", "file", "/run/reboot-needed"}};
  for (const auto& [text, backend, sentinel] : cases) {
    dir.write("etc/os-release", text + "\n");
    const auto choice = choose_backend({}, root);
    ASSERT_TRUE(choice) << choice.error().message();
    EXPECT_EQ(choice->backend, backend) << text;
    EXPECT_EQ(choice->sentinel, sentinel);
    EXPECT_THAT(choice->why, HasSubstr("os-release"));
  }
}

TEST_F(DetectTest, FromMarks) {
  dir.write("etc/os-release", "ID=fedora\nVARIANT_ID=coreos\n");
  dir.write("run/ostree-booted", "");
  auto choice = choose_backend({}, root);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->backend, "rpm-ostree");
  EXPECT_THAT(choice->why, HasSubstr("/run/ostree-booted"));

  fs::remove(dir / "run/ostree-booted");
  fs::remove(dir / "etc/os-release");
  dir.write("run/api.sock", "");
  choice = choose_backend({}, root);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->backend, "bottlerocket");
  dir.write("etc/os-release", "ID=debian\n");
  EXPECT_EQ(choose_backend({}, root)->backend, "debian") << "somebody else's api.sock";
}

// Without --update, the agent only reads the tool's sentinel file, for which the back end `file` is enough. With
// --update, it needs a back end that can install updates.
TEST_F(DetectTest, UpdatesNeedABackEndThatCanInstallThem) {
  dir.write("etc/os-release", "ID=\"opensuse-microos\"\nID_LIKE=\"suse opensuse opensuse-tumbleweed\"\n");
  EXPECT_EQ(choose_backend({}, root)->backend, "file");
  EXPECT_EQ(choose_backend({.updates = true}, root)->backend, "transactional-update");
}

TEST_F(DetectTest, FromTheFilesOfATool) {
  dir.write("etc/os-release", "ID=poky\n");
  dir.write("usr/lib/sysupdate.d/50-root.transfer", "");
  EXPECT_FALSE(choose_backend({}, root)) << "its transfers are not of the system";
  dir.write("etc/os-release", "ID=poky\nIMAGE_VERSION=7\n");
  EXPECT_EQ(choose_backend({}, root)->backend, "sysupdate");
  dir.write("etc/rauc/system.conf", "");
  const auto choice = choose_backend({}, root);
  EXPECT_EQ(choice->backend, "rauc");
  EXPECT_THAT(choice->why, HasSubstr("/etc/rauc/system.conf"));
  // Files of a tool do not decide on Flatcar and Debian: Flatcar updates its extensions with systemd-sysupdate, and
  // Debian may have the package of RAUC.
  dir.write("etc/os-release", "ID=flatcar\n");
  EXPECT_EQ(choose_backend({}, root)->backend, "flatcar");
  dir.write("etc/os-release", "ID=debian\n");
  EXPECT_EQ(choose_backend({}, root)->backend, "debian");
}

// rpm-ostree and bootc use the program ostree, too, so it decides only if neither of them is there.
TEST_F(DetectTest, WhichToolOfAnOstreeSystem) {
  dir.write("run/ostree-booted", "");
  EXPECT_EQ(choose_backend({}, root)->backend, "rpm-ostree") << "a container may see none of the programs";
  dir.write("usr/bin/ostree", "");
  const auto choice = choose_backend({}, root);
  EXPECT_EQ(choice->backend, "ostree");
  EXPECT_THAT(choice->why, HasSubstr("/run/ostree-booted"));
  EXPECT_THAT(choice->why, HasSubstr("/usr/bin/ostree"));
  dir.write("usr/bin/bootc", "");
  EXPECT_EQ(choose_backend({}, root)->backend, "bootc");
  dir.write("usr/bin/rpm-ostree", "");
  EXPECT_EQ(choose_backend({}, root)->backend, "rpm-ostree");
  // The program alone does not make a system of ostree: Flatpak uses it on other systems.
  fs::remove(dir / "run/ostree-booted");
  dir.write("etc/os-release", "ID=debian\n");
  EXPECT_EQ(choose_backend({}, root)->backend, "debian");
}

TEST_F(DetectTest, NothingFoundSaysWhatWasSeenAndWhatHelps) {
  for (const char* text : {"ID=alpine\nPRETTY_NAME=\"Alpine Linux v3.20\"\n", ""}) {
    dir.write("etc/os-release", text);
    const auto choice = choose_backend({}, root);
    ASSERT_FALSE(choice);
    EXPECT_EQ(choice.error().code(), Errc::unavailable);
    for (const char* part : {"--backend", "--sentinel", *text == '\0' ? "linux" : "Alpine Linux v3.20"})
      EXPECT_THAT(choice.error().message(), HasSubstr(part));
  }
  fs::remove(dir / "etc/os-release");
  const auto bare = choose_backend({}, root);
  ASSERT_FALSE(bare);
  EXPECT_THAT(bare.error().message(), HasSubstr("/etc/os-release"));
}

TEST_F(DetectTest, WhatCannotBeReadIsAnError) {
  EXPECT_FALSE(choose_backend({}, HostRoot(dir / "no-such-root")));
  fs::create_directories(dir / "etc/os-release");
  EXPECT_FALSE(choose_backend({}, root));
}

TEST_F(DetectTest, OptionsOverrideWhatIsThere) {
  dir.write("etc/os-release", "ID=bottlerocket\n");
  EXPECT_EQ(choose_backend({.backend = "debian"}, root)->backend, "debian");
  EXPECT_EQ(choose_backend({.sentinel = "/run/x"}, root).value(),
            (FoundBackend{"file", "/run/x", "--sentinel says so"}));
  EXPECT_EQ(choose_backend({.sentinel_command = "check"}, root)->backend, "command");
  EXPECT_EQ(choose_backend({.backend = "file", .sentinel = "/run/x"}, root)->sentinel, "/run/x");
  EXPECT_EQ(choose_backend({.backend = "command", .sentinel_command = "check"}, root)->backend, "command");
  for (const std::string& name : backend_names()) {
    const BackendWish wish{name, name == "file" ? "/run/x" : "", name == "command" ? "check" : ""};
    const auto choice = choose_backend(wish, HostRoot(dir / "no-such-root"));
    ASSERT_TRUE(choice) << name;
    EXPECT_EQ(choice->backend, name);
    EXPECT_THAT(choice->why, Not(IsEmpty()));
  }
}

TEST_F(DetectTest, ContradictionsAreRefused) {
  const std::vector<BackendWish> wishes = {{.backend = "apt"},
                                           {.backend = "Debian"},
                                           {.backend = "file"},
                                           {.backend = "command"},
                                           {.backend = "debian", .sentinel = "/run/x"},
                                           {.backend = "command", .sentinel = "/run/x", .sentinel_command = "c"},
                                           {.backend = "file", .sentinel = "/run/x", .sentinel_command = "c"},
                                           {.sentinel = "/run/x", .sentinel_command = "c"}};
  for (const BackendWish& wish : wishes) {
    const auto choice = choose_backend(wish, root);
    ASSERT_FALSE(choice) << wish.backend << " " << wish.sentinel;
    EXPECT_EQ(choice.error().code(), Errc::invalid);
  }
  for (const std::string& name : backend_names())
    EXPECT_THAT(choose_backend({.backend = "apt"}, root).error().message(), HasSubstr(name));
}

}  // namespace
}  // namespace haulout::agent
