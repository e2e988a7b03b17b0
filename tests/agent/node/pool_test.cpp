// Tests to which pool a node belongs, by its record, its labels and the Leases, and how many nodes may be unavailable.
#include "agent/node/pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/node/record.hpp"

namespace haulout::agent {
namespace {

constexpr Membership member = Membership::member, unknown = Membership::unknown, stranger = Membership::stranger;

k8s::Node node(const std::string& record_pool, const std::string& label, bool control_plane = false) {
  k8s::Node node;
  node.name = "n1";
  node.uid = "u1";
  Record record;
  record.pool = record_pool;
  if (!record_pool.empty()) node.annotations.emplace(record_annotation, encode_record(record));
  if (!label.empty()) node.labels.emplace("haulout.dev/pool", label);
  if (control_plane) node.labels.emplace(control_plane_label, "");
  return node;
}

k8s::Lease turn(const std::string& pool, const std::string& holder = "n1/u1") {
  k8s::Lease lease;
  lease.name = "haulout-" + pool + "-0";
  lease.labels = {{"haulout.dev/pool", pool}};
  lease.holder = holder;
  return lease;
}

TEST(PoolMember, IsToldByTheRecordTheLabelTheTurn) {
  const OwnPool db{"db"};
  struct Row {
    k8s::Node node;
    std::vector<k8s::Lease> turns;
    Membership expected;
    const char* why;
  };
  k8s::Node broken = node("", "web");
  broken.annotations.emplace(record_annotation, "{");
  const std::vector<Row> rows = {
      {node("db", "db"), {}, member, "both say so"},
      {node("db", ""), {}, member, "somebody removed the label"},
      {node("db", "web"), {turn("web")}, member, "the agent knows best"},
      {node("", "db"), {}, member, "a person labelled a node without an agent"},
      {node("web", ""), {}, stranger, "its agent says so"},
      {node("", "web"), {turn("db")}, stranger, "the label says so"},
      {broken, {}, stranger, "a record that cannot be read says nothing"},
      {node("", ""), {turn("web")}, stranger, "it holds a turn of that pool"},
      {node("", ""), {turn("web"), turn("db")}, member, "it holds a turn of ours"},
      {node("", ""), {turn("web", "n1/another")}, unknown, "a namesake holds it"},
      {node("", ""), {}, unknown, "nothing tells"},
      {node("", "", true), {}, unknown, "what is configured for other nodes is not known"},
  };
  for (const Row& row : rows) EXPECT_EQ(membership_of(row.node, db, row.turns), row.expected) << row.why;
  EXPECT_EQ(membership_of(node("web", "web"), {"db", "role=db"}), member) << "the list has none of another pool";
}

// The agent has no configured pool, so its own role determines its pool. Nodes that name no pool may belong to that
// pool if they have the same role; nodes with the other role do not.
TEST(PoolMember, IsToldByTheRoleAtLast) {
  const OwnPool workers{"default", {}, true}, control_plane{"control-plane", {}, true};
  EXPECT_EQ(membership_of(node("", ""), workers), unknown);
  EXPECT_EQ(membership_of(node("", "", true), workers), stranger);
  EXPECT_EQ(membership_of(node("", ""), control_plane), stranger);
  EXPECT_EQ(membership_of(node("", "", true), control_plane), unknown);
  EXPECT_EQ(membership_of(node("default", "", true), workers), member) << "its agent was given that pool";
  EXPECT_EQ(pool_of_role({}), "default");
  EXPECT_EQ(pool_of_role({{"node-role.kubernetes.io/control-plane", ""}}), "control-plane");
  EXPECT_TRUE(is_control_plane(control_plane));
  EXPECT_FALSE(is_control_plane({"control-plane"})) << "named by the user";
}

TEST(MaxUnavailableTest, OfAPool) {
  struct Row {
    const char* text;
    std::size_t nodes;
    std::size_t expected;
  };
  const std::vector<Row> rows = {
      {"1", 3, 1},      {"1", 0, 1},
      {"0", 100, 0},    {"5", 3, 5},
      {"007", 10, 7},   {"0%", 100, 0},
      {"1%", 1, 1},     {"1%", 99, 1},
      {"1%", 199, 1},   {"1%", 200, 2},
      {"25%", 3, 1},    {"25%", 4, 1},
      {"25%", 7, 1},    {"25%", 8, 2},
      {"33%", 100, 33}, {"33%", 3, 1},
      {"34%", 3, 1},    {"66%", 3, 1},
      {"67%", 3, 2},    {"99%", 10, 9},
      {"100%", 1, 1},   {"100%", 5000, 5000},
      {"50%", 5, 2},    {"25%", 0, 0},
      {"100%", 0, 0},   {"50%", std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() / 2},
  };
  for (const Row& row : rows) {
    const auto limit = parse_max_unavailable(row.text);
    ASSERT_TRUE(limit.has_value()) << limit.error().message();
    EXPECT_EQ(limit->of(row.nodes), row.expected) << row.text << " of " << row.nodes;
  }
}

TEST(MaxUnavailableTest, RefusesTheRest) {
  for (const char* text : {"",
                           " ",
                           "-1",
                           "-1%",
                           "101%",
                           "1000%",
                           "%",
                           "%5",
                           "5%%",
                           "1.5",
                           "12.5%",
                           "1e3",
                           "one",
                           "+1",
                           "1 ",
                           " 1",
                           "25 %",
                           "0x10",
                           "99999999999999999999",
                           "99999999999999999999%",
                           "1,5",
                           "\xff",
                           "all"}) {
    const auto limit = parse_max_unavailable(text);
    ASSERT_FALSE(limit.has_value()) << text;
    EXPECT_EQ(limit.error().code(), Errc::invalid) << text;
    EXPECT_THAT(limit.error().message(), ::testing::HasSubstr("; write a number of nodes like 1")) << text;
  }
}

TEST(RampTest, IsAListOfSizes) {
  using Unit = MaxUnavailable::Unit;
  const auto ramp = parse_ramp("1,2,5%,25%");
  ASSERT_TRUE(ramp);
  EXPECT_EQ(*ramp, (std::vector<MaxUnavailable>{{1}, {2}, {5, Unit::percent}, {25, Unit::percent}}));
  EXPECT_EQ(parse_ramp("3")->size(), 1u);
  EXPECT_TRUE(parse_ramp("")->empty());
  for (const char* text : {"0", "0%", "1,0", ",", "1,", ",1", "1,,2", "1;2", "1, 2", "-1", "101%", "x"})
    EXPECT_FALSE(parse_ramp(text)) << text;
}

TEST(MaxUnavailableTest, IsWrittenAsItWasRead) {
  for (const std::string text : {"0", "1", "17", "0%", "25%", "100%"})
    EXPECT_EQ(to_string(*parse_max_unavailable(text)), text);
}

}  // namespace
}  // namespace haulout::agent
