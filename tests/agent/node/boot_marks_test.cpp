#include "agent/node/record.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using ::testing::HasSubstr;

TEST(BootMarks, WhatShowsARestart) {
  const MachineStart first{"systemd", 5}, second{"systemd", 9}, from_proc{"/proc/1/stat", 9}, unknown{};
  const struct {
    const char* what;
    BootMarks before, after;
    bool shown;
  } rows[] = {
      {"nothing has changed", {"k1", first}, {"k1", first}, false},
      {"another boot id at the kubelet", {"k1", first}, {"k2", first}, true},
      {"a kubelet that was late", {"k0", first}, {"own", first}, false},
      {"a kubelet that had reported none", {"", first}, {"k2", first}, false},
      {"a kubelet that reports none any more", {"k1", first}, {"", first}, false},
      {"another first process", {"k1", first}, {"k1", second}, true},
      {"told by somebody else", {"k1", first}, {"k1", from_proc}, false},
      {"told by nobody any more", {"k1", first}, {"k1", unknown}, false},
      {"told by nobody before", {"k1", unknown}, {"k1", first}, false},
      {"told by nobody at all", {"", unknown}, {"", unknown}, false},
  };
  for (const auto& row : rows) EXPECT_EQ(!restart_shown(row.before, row.after, "own").empty(), row.shown) << row.what;
}

TEST(BootMarks, AForeignBootIdIsThatOfAKubeletThatIsReady) {
  k8s::Node node;
  node.name = "n1";
  node.boot_id = "k1";
  node.ready = true;
  EXPECT_TRUE(has_foreign_boot_id(node, "own"));
  EXPECT_FALSE(has_foreign_boot_id(node, "k1"));
  EXPECT_FALSE(has_foreign_boot_id(node, ""));
  node.ready = false;
  EXPECT_FALSE(has_foreign_boot_id(node, "own"));
  node.ready = true;
  node.boot_id.clear();
  EXPECT_FALSE(has_foreign_boot_id(node, "own"));
}

TEST(BootMarks, BothSayWhatToDo) {
  k8s::Node node;
  node.name = "n1";
  node.boot_id = "k1";
  EXPECT_THAT(foreign_boot_id(node, "own"), HasSubstr("ProtectProc=default"));
  EXPECT_THAT(unchanged_boot_id("its process 1 has another start time", "n1"), HasSubstr("haulout.dev/record-"));
}

}  // namespace
}  // namespace haulout::agent
