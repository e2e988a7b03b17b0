#include "agent/hooks/hooks.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/k8s/temp_dir.hpp"

namespace haulout::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HookFilesTest : public ::testing::Test {
 protected:
  haulout::testing::TempDir dir;
  const HostRoot root{dir.path()};

  void script(const std::string& name) { dir.write_script("etc/hooks.d/" + name, "exit 0"); }
  HookFiles files() {
    auto found = hook_files(root, "/etc/hooks.d", HookPoint::before_drain);
    if (!found) throw std::runtime_error(found.error().message());
    return *std::move(found);
  }
};

TEST_F(HookFilesTest, NoDirectoryNoHooks) {
  EXPECT_THAT(files().names, IsEmpty());
  EXPECT_TRUE(stray_hooks(root, "/etc/hooks.d").value().empty());
}

TEST_F(HookFilesTest, RunInTheOrderOfTheirNames) {
  for (const char* name : {"20-b", "10-a", "100-c", "9_x.sh"}) script(std::string("before-drain/") + name);
  script("after-drain/other");
  EXPECT_THAT(files().names, ElementsAre("10-a", "100-c", "20-b", "9_x.sh"));
}

TEST_F(HookFilesTest, WhatIsNotRunIsSaid) {
  dir.write("etc/hooks.d/before-drain/10-off", "#!/bin/sh\n");
  script("before-drain/a hook");
  script("before-drain/" + std::string(101, 'x'));
  script("before-drain/sub/inner");
  const HookFiles found = files();
  EXPECT_THAT(found.names, IsEmpty());
  EXPECT_THAT(found.skipped, ElementsAre(HasSubstr("chmod +x"), HasSubstr("the name of a hook"),
                                         HasSubstr("it is not a file"), HasSubstr("the name of a hook")));
}

TEST_F(HookFilesTest, WhatEditorsAndPackagesLeaveIsNone) {
  for (const char* name : {".hidden", "a~", "a.bak", "a.dpkg-old", "a.dpkg-dist", "a.rpmsave", "a.swp"})
    script(std::string("before-drain/") + name);
  EXPECT_THAT(files().names, IsEmpty());
  EXPECT_THAT(files().skipped, IsEmpty());
}

TEST_F(HookFilesTest, WhatOthersMayChangeIsRefusedWithAllTheRest) {
  script("before-drain/10-a");
  script("before-drain/20-b");
  for (const char* victim : {"etc/hooks.d/before-drain/20-b", "etc/hooks.d/before-drain"}) {
    for (const mode_t mode : {mode_t{0775}, mode_t{0757}}) {
      ::chmod((dir / victim).c_str(), mode);
      const auto found = hook_files(root, "/etc/hooks.d", HookPoint::before_drain);
      ASSERT_FALSE(found) << victim;
      EXPECT_EQ(found.error().code(), Errc::invalid);
      EXPECT_THAT(found.error().message(), HasSubstr(std::string("/") + victim));
      ::chmod((dir / victim).c_str(), 0755);
    }
  }
  EXPECT_THAT(files().names, ElementsAre("10-a", "20-b"));
}

TEST_F(HookFilesTest, WhatBelongsToSomebodyElseIsRefused) {
  script("before-drain/10-a");
  if (::chown((dir / "etc/hooks.d/before-drain/10-a").c_str(), 4711, 4711) != 0) GTEST_SKIP() << "needs root";
  const auto found = hook_files(root, "/etc/hooks.d", HookPoint::before_drain);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message(), HasSubstr("4711"));
}

// The absolute target of a symbolic link is looked up beneath the host's root. A link whose target does not exist there
// is skipped, although the agent's own file system has it.
TEST_F(HookFilesTest, LinksAreTheHosts) {
  dir.write_script("usr/lib/ceph/noout", "exit 0");
  std::filesystem::create_directories(dir / "etc/hooks.d/before-drain");
  std::filesystem::create_symlink("/usr/lib/ceph/noout", dir / "etc/hooks.d/before-drain/50-ceph");
  std::filesystem::create_symlink("/bin/sh", dir / "etc/hooks.d/before-drain/60-gone");
  ASSERT_TRUE(std::filesystem::exists("/bin/sh"));
  EXPECT_THAT(files().names, ElementsAre("50-ceph"));
  EXPECT_THAT(files().skipped, ElementsAre(HasSubstr("60-gone")));
}

TEST_F(HookFilesTest, StraysAreNamed) {
  script("before-drain/10-a");
  script("pre-drain/10-a");
  script("reload");
  EXPECT_THAT(stray_hooks(root, "/etc/hooks.d").value(), ElementsAre(HasSubstr("pre-drain"), HasSubstr("reload")));
}

}  // namespace
}  // namespace haulout::agent
