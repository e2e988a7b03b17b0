#include "agent/backends/debian_backend.hpp"

#include <gtest/gtest.h>

namespace haulout::agent {
namespace {

struct Order {
  std::string smaller, larger;
};
class CompareVersions : public ::testing::TestWithParam<Order> {};

TEST_P(CompareVersions, AsDpkg) {
  const auto& [smaller, larger] = GetParam();
  EXPECT_TRUE(compare_versions(smaller, larger) < 0);
  EXPECT_TRUE(compare_versions(larger, smaller) > 0);
  EXPECT_TRUE(compare_versions(smaller, smaller) == 0);
}

INSTANTIATE_TEST_SUITE_P(Pairs, CompareVersions,
                         ::testing::Values(Order{"6.1.9", "6.1.10"}, Order{"6.1", "6.1.0"}, Order{"6.1~rc1", "6.1"},
                                           Order{"6.1~rc1", "6.1~rc2"}, Order{"6.1~~", "6.1~"}, Order{"", "1"},
                                           Order{"~", ""}, Order{"6.1a", "6.1+"}, Order{"6.1a", "6.1b"},
                                           Order{"6.1.0-9", "6.1.0-18"}, Order{"5.15.0-91", "6.1.0-1"},
                                           Order{"9", "99999999999999999999999"}, Order{"1.2", "1.10"}));

TEST(CompareVersions, LeadingZerosDoNotCount) {
  EXPECT_TRUE(compare_versions("6.01.0", "6.1.000") == 0);
}

TEST(KernelFlavour, IsTheEndThatNamesTheBuild) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"6.1.0-18-amd64", "amd64"},
                                                                  {"6.1.0-18-cloud-amd64", "cloud-amd64"},
                                                                  {"5.15.0-91-generic", "generic"},
                                                                  {"6.1.0-0.deb11.11-rt-amd64", "rt-amd64"},
                                                                  {"6.1.55", ""},
                                                                  {"6.12.0-rc5", ""},
                                                                  {"6.12.0-rc5-amd64", "amd64"},
                                                                  {"6.6.31+rpt-rpi-v8", "rpi-v8"},
                                                                  {"6.6.31+rpt-rpi-2712", ""},
                                                                  {"6.1.0-18-amd64.old", "amd64.old"},
                                                                  {"amd64", ""},
                                                                  {"", ""},
                                                                  {"6.1-", ""}};
  for (const auto& [release, flavour] : cases) EXPECT_EQ(kernel_flavour(release), flavour) << release;
}

struct Boot {
  std::string running;
  std::vector<std::string> names;
  std::optional<std::string> expected;
};
class NewerKernel : public ::testing::TestWithParam<Boot> {};

TEST_P(NewerKernel, IsTheNewestOfTheSameFlavour) {
  EXPECT_EQ(newer_kernel(GetParam().running, GetParam().names), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Directories, NewerKernel,
    ::testing::Values(
        Boot{"6.1.0-18-amd64", {}, std::nullopt},
        Boot{"6.1.0-18-amd64", {"vmlinuz-6.1.0-18-amd64", "vmlinuz-6.1.0-9-amd64"}, std::nullopt},
        Boot{"6.1.0-18-amd64",
             {"vmlinuz-6.1.0-18-amd64", "vmlinuz-6.1.0-20-amd64", "vmlinuz-6.1.0-21-amd64"},
             "6.1.0-21-amd64"},
        Boot{"6.1.0-18-amd64", {"vmlinuz-6.1.0-20-cloud-amd64", "vmlinuz-6.2.0-1-rt-amd64"}, std::nullopt},
        Boot{"6.1.0-18-amd64", {"vmlinuz-6.1.0-20-amd64.dpkg-new", "vmlinuz", "config-6.1.0-20-amd64"}, std::nullopt},
        // The running kernel was removed, and an older one is installed.
        Boot{"6.1.0-18-amd64", {"vmlinuz-6.1.0-17-amd64"}, std::nullopt},
        Boot{"6.1.0-1-amd64", {"vmlinuz-6.1.0-rc5-amd64"}, std::nullopt},
        Boot{"6.1.0-rc5-amd64", {"vmlinuz-6.1.0-1-amd64"}, "6.1.0-1-amd64"},
        Boot{"6.1.0-18-amd64",
             {"vmlinuz-6.1.0-20-amd64", "initrd.img-6.1.0-18-amd64", "vmlinuz-6.1.0-19-amd64",
              "initrd.img-6.1.0-19-amd64"},
             "6.1.0-19-amd64"},
        Boot{"6.6.20+rpt-rpi-v7l", {"vmlinuz-6.6.20+rpt-rpi-v8"}, std::nullopt}));

}  // namespace
}  // namespace haulout::agent
