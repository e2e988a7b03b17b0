// Tests real files in the test's own directory. The tests also run as root. So a file that cannot be read is a
// directory, a loop of links or a pipe, not a file without permissions.
#include "agent/hosts/host_root.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/k8s/temp_dir.hpp"

namespace haulout::agent {
namespace {
using namespace std::string_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class HostRootTest : public ::testing::Test {
 protected:
  haulout::testing::TempDir dir;
  const HostRoot root{dir.path()};

  std::string read(const std::string& path, std::size_t limit = 1024) const {
    const auto content = root.read(path, limit);
    if (!content) return "error: " + content.error().message();
    return content->value_or("nothing");
  }
  static std::string content_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(HostRootTest, ReadsBeneathTheDirectory) {
  dir.write("run/x", "here");
  EXPECT_EQ(read("/run/x"), "here");
  EXPECT_EQ(read("run/x"), "here");
  EXPECT_EQ(read("//run/./y/../x"), "here");
  EXPECT_EQ(read("/../../run/x"), "here");
  EXPECT_EQ(HostRoot(dir.path() + "//").read("run/x", 10)->value(), "here");
}

TEST_F(HostRootTest, WhatIsNotThereIsNothing) {
  dir.write("run/file", "");
  fs::create_symlink("/run/nowhere", dir / "run/dangling");
  EXPECT_EQ(read("/run/missing"), "nothing");
  EXPECT_EQ(read("/no/such/directory"), "nothing");
  EXPECT_EQ(read("/run/file/below"), "nothing");
  EXPECT_EQ(read("/run/dangling"), "nothing");
}

TEST_F(HostRootTest, WhatCannotBeReadIsAnError) {
  fs::create_directories(dir / "run/directory");
  fs::create_symlink("circle", dir / "run/circle");
  fs::create_symlink("/run/pong/x", dir / "run/ping");
  fs::create_symlink("/run/ping/x", dir / "run/pong");
  ASSERT_EQ(::mkfifo((dir / "run/pipe").c_str(), 0644), 0);
  for (const std::string& path : {"/run/directory"s, "/run/circle"s, "/run/ping"s, "/run/pipe"s,
                                  "/run/"s + std::string(300, 'x'), "/run/a\0b"s, "/"s}) {
    const auto content = root.read(path, 10);
    ASSERT_FALSE(content) << path;
    EXPECT_EQ(content.error().code(), Errc::unavailable);
    EXPECT_FALSE(content.error().message().empty());
  }
  EXPECT_THAT(read("/run/directory"), AllOf(HasSubstr("/run/directory"), HasSubstr(dir.path())));
}

TEST_F(HostRootTest, ADirectoryThatIsNotThereIsAnErrorForEveryFile) {
  const HostRoot gone(dir / "gone");
  dir.write("file", "");
  const HostRoot file(dir / "file");
  for (const HostRoot& wrong : {gone, file}) {
    EXPECT_FALSE(wrong.read("/run/x", 10));
    EXPECT_FALSE(wrong.exists("/run/x"));
    EXPECT_FALSE(wrong.list("/boot"));
    EXPECT_FALSE(wrong.write("/run/x", ""));
    EXPECT_FALSE(show_ready(wrong, false));
  }
  EXPECT_FALSE(fs::exists(dir / "gone"));
}

TEST_F(HostRootTest, LinksAreTheHostsOwn) {
  dir.write("run/x", "inside");
  const std::string outside = dir.write("outside", "outside");
  fs::create_directories(dir / "var");
  fs::create_symlink("/run", dir / "var/run");
  EXPECT_EQ(read("/var/run/x"), "inside");
  fs::create_symlink("../../../../../../../run/x", dir / "var/climbing");
  EXPECT_EQ(read("/var/climbing"), "inside");
  fs::create_symlink("../var/run/../run/./x", dir / "run/winding");
  EXPECT_EQ(read("/run/winding"), "inside");

  const HostRoot below(dir / "var");
  fs::create_symlink(outside, dir / "var/absolute");
  EXPECT_FALSE(below.read("/absolute", 10)->has_value()) << "the link led out";
  EXPECT_FALSE(below.read("/../outside", 10)->has_value());
}

TEST_F(HostRootTest, ReadsNoMoreThanItsLimit) {
  const std::string path = dir.write("big", "");
  fs::resize_file(path, std::uintmax_t{1} << 40);  // a sparse file of one tebibyte
  EXPECT_EQ(read("/big", 100), std::string(100, '\0'));
  dir.write("nul", "a\0b"s);
  EXPECT_EQ(read("/nul"), "a\0b"s);
  EXPECT_EQ(read("/nul", 0), "");
}

TEST_F(HostRootTest, ExistsAndLists) {
  dir.write("boot/b", "");
  dir.write("boot/a", "");
  dir.write("file", "");
  fs::create_symlink("nowhere", dir / "dangling");
  fs::create_symlink("circle", dir / "circle");
  EXPECT_TRUE(*root.exists("/boot"));
  EXPECT_FALSE(*root.exists("/run"));
  EXPECT_FALSE(*root.exists("/dangling"));
  EXPECT_FALSE(root.exists("/circle"));
  EXPECT_THAT(root.list("/boot/")->value(), ElementsAre("a", "b"));
  EXPECT_FALSE(root.list("/missing")->has_value());
  EXPECT_FALSE(root.list("/circle"));
}

TEST_F(HostRootTest, WritesAtOnceAndMakesDirectories) {
  ASSERT_TRUE(root.write("/run/a/b", "one"));
  ASSERT_TRUE(root.write("/run/a/b", "two"));
  EXPECT_EQ(content_of(dir / "run/a/b"), "two");
  EXPECT_THAT(root.list("/run/a")->value(), ElementsAre("b"));

  fs::create_directories(dir / "run/a/taken");
  EXPECT_FALSE(root.write("/run/a/taken", "x"));
  EXPECT_THAT(root.list("/run/a")->value(), ElementsAre("b", "taken")) << "a scratch file was left";
  EXPECT_FALSE(root.write("/run/a/b/c", "x")) << "a file in place of a directory";
  EXPECT_FALSE(root.write("/", "x"));
}

TEST_F(HostRootTest, WritingReplacesALinkAndLeavesItsTarget) {
  dir.write("target", "old");
  fs::create_symlink("/target", dir / "link");
  ASSERT_TRUE(root.write("/link", "new"));
  EXPECT_EQ(content_of(dir / "target"), "old");
  EXPECT_EQ(read("/link"), "new");
  EXPECT_FALSE(fs::is_symlink(dir / "link"));
}

TEST_F(HostRootTest, RemovesOnce) {
  dir.write("run/x", "");
  EXPECT_TRUE(root.remove("/run/x"));
  EXPECT_FALSE(fs::exists(dir / "run/x"));
  EXPECT_TRUE(root.remove("/run/x"));
  EXPECT_TRUE(root.remove("/no/such/place"));
  fs::create_directories(dir / "run/directory");
  EXPECT_FALSE(root.remove("/run/directory"));
}

TEST_F(HostRootTest, ReadyFileIsThereExactlyWhileReady) {
  const std::string ready = dir / "run/haulout/ready";
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(show_ready(root, false));
    EXPECT_FALSE(fs::exists(ready));
    ASSERT_TRUE(show_ready(root, true));
    ASSERT_TRUE(show_ready(root, true));
    EXPECT_TRUE(fs::exists(ready));
    EXPECT_THAT(root.list("/run/haulout")->value(), ElementsAre("ready"));
  }
}

TEST_F(HostRootTest, BootId) {
  const std::string id = "0b5cbcf5-8b0c-4c0e-9d3e-6a51a4b7a0b1";
  EXPECT_FALSE(read_boot_id(root)) << "missing";
  dir.write("proc/sys/kernel/random/boot_id", id + "\n");
  EXPECT_EQ(*read_boot_id(root), id);
  for (const std::string& bad : {""s, "\n"s, "two words\n"s, "a\0b\n"s, std::string(5000, 'a')}) {
    dir.write("proc/sys/kernel/random/boot_id", bad);
    EXPECT_FALSE(read_boot_id(root)) << bad;
  }
}

TEST_F(HostRootTest, WhenTheFirstProcessBegan) {
  EXPECT_FALSE(read_first_process(root)) << "missing";
  const std::string rest = " S 0 1 1 0 -1 4194560 3 4 5 6 7 8 9 10 20 0 1 0 ";
  dir.write("proc/1/stat", "1 (systemd)" + rest + "4711 99 100\n");
  EXPECT_EQ(*read_first_process(root), 4711u);
  dir.write("proc/1/stat", "1 (a ) name (1)" + rest + "12 99\n");
  EXPECT_EQ(*read_first_process(root), 12u);
  for (const std::string& bad :
       {std::string(), std::string("1 systemd S 0 1"), "1 (x)" + rest, "1 (x)" + rest + "-5"}) {
    dir.write("proc/1/stat", bad);
    EXPECT_FALSE(read_first_process(root)) << bad;
  }
}

TEST_F(HostRootTest, TheMachinesOwnRoot) {
  const HostRoot machine;
  EXPECT_EQ(*machine.locate("/"), "/");
  EXPECT_EQ(machine.display("run/x"), "/run/x");
  const auto id = read_boot_id(machine);
  ASSERT_TRUE(id) << id.error().message();
  EXPECT_EQ(id->size(), 36u);
  dir.write("x", "seen");
  EXPECT_EQ(machine.read(dir / "x", 10)->value(), "seen");
}

TEST_F(HostRootTest, WhetherSystemdWasBooted) {
  EXPECT_FALSE(systemd_booted(root).value());
  std::filesystem::create_directories(dir / "run/systemd/system");
  EXPECT_TRUE(systemd_booted(root).value());
}

}  // namespace
}  // namespace haulout::agent
