#include "agent/hosts/system_files.hpp"

#include <gmock/gmock.h>

#include "tests/k8s/temp_dir.hpp"

namespace haulout::agent {
namespace {

using haulout::testing::TempDir;

struct Case {
  std::string text;
  OsRelease expected;
};
class OsReleaseTest : public ::testing::TestWithParam<Case> {};

TEST_P(OsReleaseTest, Parse) {
  const OsRelease release = parse_os_release(GetParam().text);
  EXPECT_EQ(release, GetParam().expected) << release.id << ", " << release.pretty_name;
}

INSTANTIATE_TEST_SUITE_P(
    Texts, OsReleaseTest,
    ::testing::Values(
        Case{"", {.id = "linux"}},
        Case{"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nID=debian\n",
             {.id = "debian", .version_id = "12", .pretty_name = "Debian GNU/Linux 12 (bookworm)"}},
        Case{"ID=linuxmint\r\nID_LIKE=\"ubuntu debian\"\r\n", {.id = "linuxmint", .id_like = {"ubuntu", "debian"}}},
        Case{"ID='opensuse-microos'\n# a comment\nID_LIKE=\"suse opensuse\"\nIMAGE_VERSION=20260101",
             {.id = "opensuse-microos", .id_like = {"suse", "opensuse"}, .image_version = "20260101"}},
        Case{"ID=bottlerocket\nVARIANT_ID=aws-k8s-1.31\nVERSION_ID=1.15.1\n",
             {.id = "bottlerocket", .version_id = "1.15.1"}},
        Case{"PRETTY_NAME=\"A \\\"B\\\" \\$C\"\n", {.id = "linux", .pretty_name = "A \"B\" $C"}},
        // Variables are not expanded, and lines that are not assignments are ignored.
        Case{"PRETTY_NAME=$HOME\njunk\n=\nID=\"open\nVERSION_ID=a b\n", {.id = "linux", .pretty_name = "$HOME"}},
        Case{std::string("ID=de\0bian\nVERSION_ID=12\n", 25), {.id = "linux", .version_id = "12"}},
        Case{"ID=first\nID=last\n", {.id = "last"}}, Case{"ID=\n", {.id = "linux"}}));

TEST(OsReleaseIsLike, IdOrIdLike) {
  const OsRelease mint{.id = "linuxmint", .id_like = {"ubuntu", "debian"}};
  EXPECT_TRUE(mint.is_like("linuxmint"));
  EXPECT_TRUE(mint.is_like("debian"));
  EXPECT_FALSE(mint.is_like("deb"));
}

TEST(ReadOsRelease, FollowsTheHostsOwnLinksAndFallsBack) {
  const TempDir dir;
  const HostRoot root(dir.path());
  auto release = read_os_release(root);
  ASSERT_TRUE(release);
  EXPECT_FALSE(*release);

  dir.write("usr/lib/os-release", "ID=debian\n");
  release = read_os_release(root);
  ASSERT_TRUE(release && *release);
  EXPECT_EQ((*release)->id, "debian");

  dir.write("nix/store/x", "ID=nixos\n");
  std::filesystem::create_directories(dir / "etc");
  std::filesystem::create_symlink("/nix/store/x", dir / "etc/os-release");
  release = read_os_release(root);
  ASSERT_TRUE(release && *release);
  EXPECT_EQ((*release)->id, "nixos");

  std::filesystem::remove(dir / "etc/os-release");
  std::filesystem::create_directories(dir / "etc/os-release");
  EXPECT_FALSE(read_os_release(root)) << "a directory in its place";
}

constexpr const char* option = "Unattended-Upgrade::Automatic-Reboot";
using Value = std::optional<std::string>;

TEST(AptConf, TheWaysToWriteAnOption) {
  struct Case {
    const char* text;
    Value value;
  };
  const std::vector<Case> rows = {
      {"", {}},
      {"Unattended-Upgrade::Automatic-Reboot \"true\";", "true"},
      {"unattended-upgrade::AUTOMATIC-reboot yes;", "yes"},
      {"Unattended-Upgrade { Automatic-Reboot \"true\"; };", "true"},
      {"Unattended-Upgrade {\n  Origins { \"a:b\"; \"Automatic-Reboot\"; };\n  Automatic-Reboot \"1\";\n};\n", "1"},
      {"//Unattended-Upgrade::Automatic-Reboot \"true\";", {}},
      {"# Unattended-Upgrade::Automatic-Reboot \"true\";\n", {}},
      {"/* Unattended-Upgrade::Automatic-Reboot \"true\"; */", {}},
      {"Unattended-Upgrade::Automatic-Reboot \"true\";\nUnattended-Upgrade::Automatic-Reboot \"false\";", "false"},
      {"Unattended-Upgrade::Automatic-Reboot-Time \"02:00\";", {}},
      {"Other { Automatic-Reboot \"true\"; };", {}},
      {"A \"//x\"; Unattended-Upgrade::Automatic-Reboot \"true\";", "true"},
      {"}} Unattended-Upgrade::Automatic-Reboot \"true", "true"},
  };
  for (const Case& row : rows) EXPECT_EQ(apt_option(row.text, option), row.value) << row.text;
}

TEST(AptConf, FilesInTheirOrder) {
  haulout::testing::TempDir dir;
  const HostRoot root{dir.path()};
  EXPECT_EQ(read_apt_option(root, option).value(), Value());
  dir.write("etc/apt/apt.conf.d/50unattended-upgrades", std::string(option) + " \"true\";");
  dir.write("etc/apt/apt.conf.d/90off.dpkg-old", std::string(option) + " \"false\";");
  EXPECT_EQ(read_apt_option(root, option).value(), "true");
  dir.write("etc/apt/apt.conf.d/99local.conf", std::string(option) + " \"false\";");
  EXPECT_EQ(read_apt_option(root, option).value(), "false");
  dir.write("etc/apt/apt.conf", std::string(option) + " \"yes\";");
  EXPECT_EQ(read_apt_option(root, option).value(), "yes");
}

TEST(AptConf, YesAndNo) {
  for (const char* yes : {"true", "YES", "1", "on", "with", "enable", "2"}) EXPECT_TRUE(apt_true(yes)) << yes;
  for (const char* no : {"", "false", "no", "0", "off", "without", "disable", "perhaps"})
    EXPECT_FALSE(apt_true(no)) << no;
}

}  // namespace
}  // namespace haulout::agent
