// The order of a roll-out: which of the nodes that wait for a slot goes first.
#include "agent/node/roll_out_order.hpp"

#include <gmock/gmock.h>

#include "agent/node/node_status.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const WallTime now{std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)};

struct Waiter {
  std::string name{};
  std::string value{};  // of the label that orders
  std::string reason = "WaitingForSlot";
  State state = State::waiting;
  bool ready = true;
  std::string waits_for{};
  std::optional<WallTime> needed_since{};
  WallTime since = now;
};

k8s::Node node_of(const Waiter& waiter, const std::string& key) {
  k8s::Node node;
  node.name = waiter.name;
  node.uid = waiter.name + "-uid";
  node.ready = waiter.ready;
  node.labels[std::string(state_label)] = to_string(waiter.state);
  if (!waiter.reason.empty()) node.labels[std::string(reason_label)] = waiter.reason;
  if (!waiter.value.empty()) node.labels[key] = waiter.value;
  Record record;
  record.state = waiter.state;
  record.waits_for = waiter.waits_for;
  record.needed_since = waiter.needed_since;
  record.since = waiter.since;
  node.annotations[std::string(record_annotation)] = encode_record(record);
  return node;
}

// The line of `own` among the others, with version 1.1.
OrderedLine line(const std::string& order, const Waiter& own, const std::vector<Waiter>& others,
                 const std::set<std::string>& passed_over = {}) {
  const auto parsed = parse_roll_out_order(order);
  if (!parsed) return {};
  std::vector<k8s::Node> nodes{node_of(own, parsed->label)};
  for (const Waiter& other : others) nodes.push_back(node_of(other, parsed->label));
  std::vector<const k8s::Node*> members;
  for (const k8s::Node& node : nodes) members.push_back(&node);
  return line_of(*parsed, nodes.front(), "1.1", members, passed_over);
}

std::vector<std::string> before(const std::string& order, const Waiter& own, const std::vector<Waiter>& others,
                                const std::set<std::string>& passed_over = {}) {
  std::vector<std::string> names;
  for (const EarlierNode& node : line(order, own, others, passed_over).before) names.push_back(node.name);
  return names;
}

TEST(RollOutOrderTest, HasFourForms) {
  EXPECT_EQ(*parse_roll_out_order("any"), RollOutOrder{});
  EXPECT_EQ(*parse_roll_out_order("zone"), (RollOutOrder{RollOutOrder::By::label, "topology.kubernetes.io/zone"}));
  EXPECT_EQ(*parse_roll_out_order("label:example.com/rank"),
            (RollOutOrder{RollOutOrder::By::label, "example.com/rank"}));
  EXPECT_EQ(*parse_roll_out_order("asked"), RollOutOrder{RollOutOrder::By::asked});
  for (const char* wrong : {"", "zones", "label", "Any", "label=a"}) EXPECT_FALSE(parse_roll_out_order(wrong)) << wrong;
}

TEST(RollOutOrderTest, ComparesTheValuesOfALabel) {
  // In this order.
  const std::vector<std::string> values{"0", "2", "10", "1.5", "10a", "9b", "a", "b", ""};
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = 0; j < values.size(); ++j)
      EXPECT_EQ(before("label:rank", {"me", values[i]}, {{"other", values[j]}}).size(), j < i ? 1u : 0u)
          << values[j] << " before " << values[i];
  EXPECT_THAT(before("label:rank", {"me", "7"}, {{"other", "07"}}), IsEmpty()) << "the same number";
  EXPECT_THAT(before("any", {"me", "2"}, {{"other", "1"}}), IsEmpty());
  EXPECT_EQ(line("label:rank", {"me", "2"}, {{"a", "2"}, {"b", "2"}, {"c", "3"}, {"d", "1"}}).beside, 2u);
}

TEST(RollOutOrderTest, GoesZoneByZone) {
  const auto all = line("zone", {"me", "eu-c"}, {{"n4", "eu-d"}, {"n3", "eu-b"}, {"n2", "eu-a"}, {"n1", "eu-a"}});
  EXPECT_THAT(all.before, ElementsAre(EarlierNode{"n1", "n1 (eu-a)", true, 0}, EarlierNode{"n2", "n2 (eu-a)", true, 0},
                                      EarlierNode{"n3", "n3 (eu-b)", true, 1}));
  EXPECT_EQ(
      words_of(*parse_roll_out_order("zone"), all.before),
      "3 nodes go before this one in the roll-out, by the label topology.kubernetes.io/zone: n1 (eu-a), n2 (eu-a), "
      "n3 (eu-b)");
  EXPECT_THAT(before("zone", {"me", "eu-c"}, {{"n3", "eu-b"}, {"n2", "eu-a"}}, {"n2"}), ElementsAre("n3"));
  EXPECT_TRUE(line("zone", {"me", "eu-c"}, {{"n3", "eu-b"}, {"n2", "eu-a"}}, {"n2"}).before.front().first);
}

// Several agents may have died. Those at the beginning of the line that do not show that they have seen the free slot
// count as first together, so that their times run together.
TEST(RollOutOrderTest, ALiveNodeEndsTheBeginningOfTheLine) {
  const auto first_ones = [](const std::vector<std::string>& reasons) {
    std::vector<Waiter> others;
    for (std::size_t i = 0; i < reasons.size(); ++i)
      others.push_back({.name = "n", .value = std::to_string(i), .reason = reasons[i]});
    std::vector<bool> first;
    for (const EarlierNode& node : line("label:rank", {"me", "99"}, others).before) first.push_back(node.first);
    return first;
  };
  const std::string slot = "WaitingForSlot", order = "WaitingForOrder";
  EXPECT_THAT(first_ones({slot, slot, order, slot}), ElementsAre(true, true, false, false));
  EXPECT_THAT(first_ones({order, slot}), ElementsAre(true, false)) << "the first one is measured in any case";
  EXPECT_THAT(first_ones({slot, ""}), ElementsAre(true, true));
  const auto many = first_ones(std::vector<std::string>(18, slot));
  EXPECT_EQ(std::count(many.begin(), many.end(), true), 16) << "those further behind may poll rarely";
}

TEST(RollOutOrderTest, GoesByWhoHasNeededItsUpdateForLonger) {
  const Waiter me{.name = "me", .needed_since = now};
  EXPECT_THAT(before("asked", me, {{.name = "n1", .needed_since = now - 1s}}), ElementsAre("n1"));
  EXPECT_THAT(before("asked", me, {{.name = "n1", .needed_since = now}}), IsEmpty());
  EXPECT_THAT(before("asked", me, {{.name = "n1", .needed_since = now + 1s, .since = now - 1h}}), IsEmpty());
  EXPECT_THAT(before("asked", me, {{.name = "n1", .since = now - 1s}}), ElementsAre("n1")) << "an older agent";
  EXPECT_EQ(
      words_of(*parse_roll_out_order("asked"), line("asked", me, {{.name = "n1", .needed_since = now - 1h}}).before),
      "1 node goes before this one in the roll-out, by the time since when it needs its update: n1 (since "
      "2025-12-31 23:00 UTC)");
}

// P8: a node that cannot take a slot holds nobody up.
TEST(RollOutOrderTest, OnlyANodeThatIsAboutToGoHoldsOthersUp) {
  struct Row {
    Waiter other;
    bool holds_up;
    const char* why;
  };
  const std::vector<Row> rows{
      {{.reason = ""}, true, "it is about to ask"},
      {{.reason = "WaitingForSlot"}, true, ""},
      {{.reason = "WaitingForOrder"}, true, ""},
      {{.reason = "WaitingForWave", .waits_for = "1.1"}, true, "the wave may have begun since"},
      {{.reason = "WaitingForWave", .waits_for = "1.2"}, false, "the wave of another version"},
      {{.reason = "WaitingForWave"}, false, "an older agent"},
      {{.reason = "RollOutHalted", .waits_for = "1.1"}, true, "it may go on since"},
      {{.reason = "RollOutHalted", .waits_for = "1.2"}, false, "the roll-out of another version"},
      {{.reason = "SlotsUnavailable"}, false, "it gets no slot"},
      {{.ready = false}, false, "not Ready"},
  };
  for (Row row : rows) {
    row.other.name = "other";
    row.other.value = "a";
    EXPECT_EQ(!before("zone", {"me", "b"}, {row.other}).empty(), row.holds_up) << row.other.reason << " " << row.why;
  }
  for (const State state : all_states)
    EXPECT_EQ(!before("zone", {"me", "b"}, {{.name = "other", .value = "a", .state = state}}).empty(),
              state == State::waiting)
        << to_string(state);
}

// Neither this node nor the other one has a version by which they could be compared.
TEST(RollOutOrderTest, WithoutAVersionNobodyWaitsForItsWaves) {
  const k8s::Node own = node_of({"me", "b"}, "rank");
  const k8s::Node other = node_of({.name = "other", .value = "a", .reason = "WaitingForWave"}, "rank");
  EXPECT_THAT(line_of(*parse_roll_out_order("label:rank"), own, "", {&own, &other}, {}).before, IsEmpty());
}

}  // namespace
}  // namespace haulout::agent
