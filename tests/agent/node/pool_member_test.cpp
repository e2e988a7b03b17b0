// Tests to which pool a node belongs, by its record, its labels and the Leases.
#include "agent/node/own_pool.hpp"

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

// Covers agents without a configured pool.
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

}  // namespace
}  // namespace haulout::agent
