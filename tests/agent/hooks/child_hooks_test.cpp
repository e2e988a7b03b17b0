#include "agent/hooks/hooks.hpp"

#include <gmock/gmock.h>

#include "tests/k8s/temp_dir.hpp"
#include "tests/support/real_time.hpp"

namespace haulout::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ChildHooksTest : public haulout::testing::RealTimeTest {
 protected:
  haulout::testing::TempDir dir;
  ChildHooks hooks{HostRoot(dir.path()), clock, "/hooks.d"};

  Result<> run_script(const std::string& body, TimePoint deadline) {
    dir.write_script("hooks.d/after-drain/50-x", body);
    return run(
        hooks.run(HookPoint::after_drain, "50-x", {{"HAULOUT_NODE", "n1"}, {"HAULOUT_REASONS", "a\nb"}}, deadline));
  }
};

TEST_F(ChildHooksTest, HasPointAndEnvironment) {
  EXPECT_TRUE(
      run_script("test \"$1\" = after-drain || exit 1\ntest \"$HAULOUT_NODE\" = n1 || exit 2\n"
                 "test \"$(echo \"$HAULOUT_REASONS\" | wc -l)\" = 2 || exit 3\ntest -n \"$PATH\" || exit 4\n",
                 soon()));
}

TEST_F(ChildHooksTest, SaysWhyItFailed) {
  const auto quiet = run_script("exit 3", soon());
  ASSERT_FALSE(quiet);
  EXPECT_EQ(quiet.error().code(), Errc::unavailable);
  EXPECT_THAT(quiet.error().message(), AllOf(HasSubstr("/hooks.d/after-drain/50-x"), HasSubstr("exit status 3")));
  EXPECT_THAT(run_script("echo one; echo no quorum >&2; exit 1", soon()).error().message(), HasSubstr("no quorum"));
  EXPECT_THAT(run_script("echo one; echo 'two  words'; exit 1", soon()).error().message(), HasSubstr(": two words"));
}

TEST_F(ChildHooksTest, IsEndedAtItsDeadline) {
  const auto late = run_script("exec sleep 600", clock.now() + std::chrono::milliseconds(100));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::timeout);
  EXPECT_THAT(late.error().message(), ::testing::HasSubstr("run it on the machine yourself"));
}

TEST_F(ChildHooksTest, WhatCannotBeStartedIsAFailure) {
  dir.write("hooks.d/after-drain/50-x", "no interpreter");
  const auto failed = run(hooks.run(HookPoint::after_drain, "50-x", {}, soon()));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Errc::unavailable);
}

}  // namespace
}  // namespace haulout::agent
