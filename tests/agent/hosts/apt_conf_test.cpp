#include "agent/hosts/apt_conf.hpp"

#include <gmock/gmock.h>

#include "tests/k8s/temp_dir.hpp"

namespace haulout::agent {
namespace {

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
