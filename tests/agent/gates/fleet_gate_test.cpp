// Tests which failures on other nodes close a node's gate.
#include "agent/gates/node_gates.hpp"
#include "agent/node/node_status.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using Verdict = Gate::Verdict;

Record failed(const std::string& target, std::vector<std::string> reasons = {"kernel"}) {
  Record record;
  record.state = State::degraded;
  record.cause = "RolledBack";
  record.reboots = {{.reasons = std::move(reasons), .target = target}};
  return record;
}

k8s::Node node(const std::string& name, const Record& record) {
  k8s::Node node;
  node.name = name;
  node.labels[std::string(reason_label)] = record.cause;
  node.annotations[std::string(record_annotation)] = encode_record(record);
  return node;
}

TEST(FleetGateTest, AnUpdateThatWentWrongElsewhereIsNotBegun) {
  struct Row {
    Record other;
    Pending wanted;
    bool closed;
    const char* why;
  };
  const auto wants = [](const std::string& target, std::vector<std::string> reasons = {"kernel"}) {
    return Pending{Need::yes, std::move(reasons), target};
  };
  Record well = failed("1.1");
  well.state = State::idle;
  Record reboot_failed = failed("1.1");
  reboot_failed.uncordon = true;
  Record served = failed("1.1");
  served.reboots.back().cleared = true;
  Record before = failed("1.1");
  before.reboots.push_back({.target = "1.2"});
  Record none = failed("1.1");
  none.reboots.clear();
  const std::vector<Row> rows = {
      {failed("1.1"), wants("1.1"), true, "the same version"},
      {failed("1.1"), wants("1.2"), false, "another version"},
      {failed(""), wants(""), true, "the same reasons"},
      {failed("", {"kernel", "libc"}), wants(""), true, "all of our reasons are among its own"},
      {failed(""), wants("", {"kernel", "libc"}), false, "we want more than it did"},
      {failed("", {}), wants("", {}), false, "nothing tells what it was for"},
      {served, wants("1.1"), true, "that it wants nothing more does not make it well"},
      {well, wants("1.1"), false, "it has become well"},
      {reboot_failed, wants("1.1"), false, "its reboot did not even happen"},
      {before, wants("1.1"), false, "another update has been tried since"},
      {none, wants("1.1"), false, "it was never rebooted"},
      {failed("1.1"), Pending{Need::no, {}, "1.1"}, false, "nothing is needed: a person requested it"},
  };
  for (const Row& row : rows) {
    const Gate gate = fleet_gate({node("n2", row.other)}, "n1", row.wanted);
    EXPECT_EQ(gate.closed(), row.closed) << row.why;
    if (!row.closed) continue;
    EXPECT_EQ(gate.reason, "UpdateFailedElsewhere");
    EXPECT_THAT(gate.message, ::testing::HasSubstr("node n2 has been degraded (RolledBack)"));
  }
  EXPECT_FALSE(fleet_gate({node("n1", failed("1.1"))}, "n1", wants("1.1")).closed()) << "itself";
  k8s::Node unreadable = node("n2", failed("1.1"));
  unreadable.annotations[std::string(record_annotation)] = "{";
  EXPECT_FALSE(fleet_gate({unreadable}, "n1", wants("1.1")).closed());
}

TEST(FleetGateTest, ClosesWhenAsManyNodesHaveFailedAsHaltAfterSays) {
  const Pending wanted{Need::yes, {"kernel"}, "1.1"};
  std::vector<k8s::Node> degraded{node("n1", failed("1.1")), node("n2", failed("1.1")), node("n3", failed("1.0"))};
  EXPECT_FALSE(fleet_gate(degraded, "n1", wanted, 2).closed()) << "this node and another version do not count";
  degraded.push_back(node("n4", failed("1.1")));
  const Gate gate = fleet_gate(degraded, "n1", wanted, 2);
  EXPECT_TRUE(gate.closed());
  EXPECT_EQ(gate.message,
            "nodes n2 (RolledBack), n4 (RolledBack) have been degraded since their reboots for version 1.1, which this "
            "node needs, too (halt-after 2): repair them first");
  EXPECT_FALSE(fleet_gate(degraded, "n1", wanted, 3).closed());
  EXPECT_THAT(fleet_gate(degraded, "n1", wanted, 1).message, ::testing::HasSubstr("node n2 has been degraded"));
}

// --halt-after counts the failures with one version. Updates without a version may differ from each other, so the first
// failure closes the gate, as without the option.
TEST(FleetGateTest, WithoutAVersionTheFirstFailureCloses) {
  const Pending wanted{Need::yes, {"kernel"}, ""};
  const Gate gate = fleet_gate({node("n2", failed(""))}, "n1", wanted, 3);
  EXPECT_TRUE(gate.closed());
  EXPECT_THAT(gate.message, ::testing::HasSubstr("node n2 has been degraded (RolledBack)"));
  EXPECT_FALSE(fleet_gate({}, "n1", wanted, 3).closed());
}

TEST(VersionGateTest, ClosesWhenAsManyNodesHaveFailedAsHaltAfterSays) {
  Record record;
  record.failed_versions = {"2.0"};
  const Pending wanted{Need::yes, {"x"}, "2.0"};
  const std::vector<k8s::Node> nodes{node("n2", record), node("n3", record)};
  EXPECT_FALSE(version_gate(nodes, "n1", wanted, 3).closed());
  const Gate gate = version_gate(nodes, "n1", wanted, 2);
  EXPECT_TRUE(gate.closed());
  EXPECT_THAT(gate.message,
              ::testing::HasSubstr("version 2.0 has failed on nodes n2, n3 (halt-after 2), so this node waits"));
  EXPECT_THAT(gate.message, ::testing::HasSubstr("remove the record of node n2: kubectl annotate node n2 haulout"));
  for (const std::size_t halt_after : {0u, 1u}) {
    const std::string all = version_gate(nodes, "n1", wanted, halt_after).message;
    EXPECT_THAT(all, ::testing::HasSubstr("version 2.0 has failed on nodes n2, n3, so this node waits"));
    EXPECT_THAT(all, ::testing::HasSubstr("remove the records of 2 of these nodes: kubectl annotate node NAME"));
  }
  EXPECT_FALSE(version_gate(nodes, "n3", wanted, 1).closed()) << "it failed here, too: a person tries again";
}

TEST(VersionGateTest, AVersionThatHasFailedElsewhereIsNotInstalled) {
  const auto remembers = [](std::vector<std::string> versions) {
    Record record;
    record.failed_versions = std::move(versions);
    return record;
  };
  const auto wants = [](const std::string& target, Need need = Need::yes) { return Pending{need, {"x"}, target}; };
  const k8s::Node n1 = node("n1", remembers({"2.0"})), n2 = node("n2", remembers({"1.0", "2.0"}));
  struct Row {
    std::vector<k8s::Node> nodes;
    Pending wanted;
    bool closed;
    const char* why;
  };
  const std::vector<Row> rows = {
      {{n2}, wants("2.0"), true, "the same version"},
      {{n2}, wants("1.0"), true, "an earlier one"},
      {{n2}, wants("3.0"), false, "another version"},
      {{n2}, wants(""), false, "there are no versions"},
      {{n2}, wants("2.0", Need::no), false, "nothing waits"},
      {{n1}, wants("2.0"), false, "itself"},
      {{n2, n1}, wants("2.0"), false, "it failed here, too: a person tries again"},
      {{n1, n2}, wants("1.0"), true, "it failed only there"},
      {{node("n2", failed("2.0"))}, wants("2.0"), false, "the other rule is for this"},
      {{}, wants("2.0"), false, "its Node was deleted"},
  };
  for (const Row& row : rows) {
    const Gate gate = version_gate(row.nodes, "n1", row.wanted);
    EXPECT_EQ(gate.closed(), row.closed) << row.why;
    EXPECT_EQ(gate.effect, Gate::Effect::gives_up);
    if (!row.closed) continue;
    EXPECT_EQ(gate.reason, "VersionFailed");
    EXPECT_THAT(gate.message, ::testing::HasSubstr("version " + row.wanted.target + " has failed on node n2"));
    EXPECT_THAT(gate.message, ::testing::HasSubstr("kubectl annotate node n2 haulout.dev/record-"));
  }
}

}  // namespace
}  // namespace haulout::agent
