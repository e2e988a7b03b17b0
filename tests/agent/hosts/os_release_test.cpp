#include "agent/hosts/os_release.hpp"

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
             {.id = "opensuse-microos", .id_like = {"suse", "opensuse"}}},
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

}  // namespace
}  // namespace haulout::agent
