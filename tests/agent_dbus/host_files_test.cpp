#include "agent/dbus/host_files.hpp"

#include <gtest/gtest.h>

#include "tests/k8s_credentials/temp_dir.hpp"

namespace haulout::agent {
namespace {

class HostFilesTest : public ::testing::Test {
 protected:
  ::haulout::testing::TempDir root;
  HostFiles files{root.path()};
};

TEST_F(HostFilesTest, TheBootIdWithoutItsNewline) {
  root.write("proc/sys/kernel/random/boot_id", "5b7a4f0e-aaaa\n");
  EXPECT_EQ(files.boot_id().value(), "5b7a4f0e-aaaa");
}

TEST_F(HostFilesTest, NoBootIdIsAFailure) {
  EXPECT_EQ(files.boot_id().error().code(), Errc::unavailable);
  root.write("proc/sys/kernel/random/boot_id", "\n");
  EXPECT_EQ(files.boot_id().error().code(), Errc::unavailable);
}

TEST_F(HostFilesTest, TheReadyFileExistsExactlyWhileReady) {
  const std::filesystem::path ready = root / "run/haulout/ready";
  for (const bool wanted : {false, true, true, false, false, true}) {
    EXPECT_TRUE(files.show_ready(wanted));
    EXPECT_EQ(std::filesystem::exists(ready), wanted);
  }
}

TEST_F(HostFilesTest, AReadyFileThatCannotBeMadeIsAFailure) {
  root.write("run/haulout", "a file where a directory belongs");
  EXPECT_EQ(files.show_ready(true).error().code(), Errc::unavailable);
}

TEST_F(HostFilesTest, WhetherSystemdWasBooted) {
  EXPECT_FALSE(files.systemd_booted());
  std::filesystem::create_directories(root / "run/systemd/system");
  EXPECT_TRUE(files.systemd_booted());
}

TEST_F(HostFilesTest, TheVersionOfTheSystem) {
  EXPECT_EQ(files.os_version().error().code(), Errc::unavailable);
  root.write("etc/os-release", "ID=flatcar\nVERSION_ID=1\n");
  EXPECT_EQ(files.os_version().error().code(), Errc::unavailable);
  root.write("etc/os-release", "VERSION_ID=1\nVERSION=\"4152.2.0\"\n");
  EXPECT_EQ(files.os_version().value(), "4152.2.0");
}

TEST(OsRelease, ValuesWithAndWithoutQuotes) {
  const std::string text = "A=plain\n  B='single'\r\nC=\"double\"\nD=\nE=\"\nAA=no";
  const std::pair<const char*, const char*> rows[] = {{"A", "plain"}, {"B", "single"}, {"C", "double"},
                                                      {"D", ""},      {"E", "\""},     {"F", ""}};
  for (const auto& [key, value] : rows) EXPECT_EQ(os_release_value(text, key), value) << key;
}

}  // namespace
}  // namespace haulout::agent
