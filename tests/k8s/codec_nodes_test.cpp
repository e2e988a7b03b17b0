#include <gmock/gmock.h>

#include "k8s/codec.hpp"
#include "tests/k8s/fixtures.hpp"

namespace haulout::k8s {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Codec, ReadsANode) {
  const auto node = decode<Node>(fixtures::node);
  ASSERT_TRUE(node) << node.error().message();
  EXPECT_EQ(node->name, "n1");
  EXPECT_EQ(node->uid, "nu");
  EXPECT_EQ(node->resource_version, "9");
  EXPECT_THAT(node->labels, ElementsAre(Pair("pool", "a")));
  EXPECT_THAT(node->annotations, ElementsAre(Pair("haulout.dev/cordon", "{}"), Pair("other", "x")));
  EXPECT_TRUE(node->unschedulable);
  EXPECT_TRUE(node->ready);
  EXPECT_EQ(node->unschedulable_manager, "kubectl");
  EXPECT_THAT(node->taints, ElementsAre(Taint{"node.kubernetes.io/unschedulable", "NoSchedule",
                                              *parse_time("2026-11-21T01:00:00Z")}));
}

TEST(Codec, WhoSetUnschedulable) {
  const auto entry = [](const std::string& manager, const char* time, const char* field) {
    return R"({"manager":")" + manager + R"(","operation":"Update","time":"2026-11-21T)" + time +
           R"(Z","fieldsV1":{"f:spec":{"f:)" + field + R"(":{}}}})";
  };
  const auto cordon = [&](const std::string& manager, const char* time) {
    return entry(manager, time, "unschedulable");
  };
  const struct {
    const char* what;
    std::string entries;
    std::string manager;
  } rows[] = {
      {"nobody is booked", "", ""},
      {"of another field", entry("kubectl", "01:00:00", "taints"), ""},
      {"one", cordon("kubectl", "01:00:00"), "kubectl"},
      {"the newest", cordon("new", "02:00:00") + "," + cordon("old", "01:00:00"), "new"},
      {"our own is still in force", cordon("haulout", "01:00:00") + "," + cordon("argocd", "02:00:00"), "haulout"},
      {"our own is still in force, in another order",
       cordon("argocd", "02:00:00") + "," + cordon("haulout", "01:00:00"), "haulout"},
      {"the server has forgotten who", cordon("ancient-changes", "01:00:00"), ""},
      {"the server never knew who", cordon("before-first-apply", "01:00:00"), ""},
  };
  for (const auto& row : rows) {
    const auto node = decode<Node>(R"({"kind":"Node","metadata":{"name":"n1","uid":"u","resourceVersion":"9",)"
                                   R"("managedFields":[)" +
                                   row.entries + R"(]},"spec":{"unschedulable":true}})");
    ASSERT_TRUE(node) << row.what;
    EXPECT_EQ(node->unschedulable_manager, row.manager) << row.what;
  }
}

}  // namespace
}  // namespace haulout::k8s
