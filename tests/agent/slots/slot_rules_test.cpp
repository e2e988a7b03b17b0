#include "agent/slots/slot_rules.hpp"

#include <gmock/gmock.h>

#include <set>

namespace haulout::agent {
namespace {

using ::testing::HasSubstr;

const OwnNode me{"n1", "u1"};

const SlotGroup all{"default"};

k8s::Lease slot(std::size_t index, const OwnNode& node, const SlotGroup& group = all) {
  return slot_lease("haulout", group, index, node, WallTime{});
}
GroupView view(std::size_t limit, std::vector<k8s::Lease> slots, std::vector<std::string> out = {}) {
  GroupView view{all, std::move(slots), limit};
  for (std::string& name : out) view.out.push_back({std::move(name), "NotReady"});
  return view;
}
OwnNode other(int i) {
  return {"other" + std::to_string(i), "uid" + std::to_string(i)};
}

// A machine outside of the cluster counts as a node that holds a slot, and is never taken for a Node.
TEST(OutsideMachines, HoldSlotsLikeNodes) {
  const OwnNode machine = outside_machine("n2");
  const k8s::Lease lease = slot(0, machine);
  EXPECT_TRUE(is_outside(lease.holder));
  EXPECT_TRUE(is_outside(name_of_holder(lease)));
  EXPECT_FALSE(is_outside("n2/u2"));
  EXPECT_EQ(lease.holder, "outside machine n2/fleetlock");
  EXPECT_EQ(lease.owner, std::nullopt) << "the garbage collector would delete it";
  EXPECT_TRUE(held_by(lease, machine));
  EXPECT_FALSE(held_by(lease, OwnNode{"n2", "fleetlock"}));
  const SlotChoice refused = choose_slot(view(1, {lease}), me);
  EXPECT_FALSE(refused.take);
  EXPECT_THAT(refused.why, HasSubstr("outside machine n2 (has the slot)"));
  EXPECT_FALSE(choose_slot(view(2, {lease}, {"n2"}), me).take) << "the Node n2 is unavailable, too";
  EXPECT_EQ(choose_slot(view(3, {lease}, {"n2"}), me).take, 1u);
}

// Neither its slot nor its return counts in the waves of a roll-out, whose nodes are those of the pool.
TEST(OutsideMachines, HaveNoPlaceInAWave) {
  GroupView pool = view(3, {slot(0, outside_machine("m1"))});
  pool.roll_out = RollOut{"2.0", {1, 2}};
  EXPECT_EQ(present_wave(pool, me.name).taken, 0u);
  EXPECT_EQ(choose_slot(pool, me).take, 1u);
  pool.slots.push_back(slot(1, other(1)));
  EXPECT_EQ(present_wave(pool, me.name).taken, 1u);
  EXPECT_FALSE(choose_slot(pool, me).take);
}

TEST(SlotNames, BelongToOnePoolEach) {
  EXPECT_EQ(slot_index(all, "haulout-default-0"), 0u);
  EXPECT_EQ(slot_index(all, "haulout-default-17"), 17u);
  EXPECT_EQ(slot_index(SlotGroup{"a-b"}, "haulout-a-b-1"), 1u);
  for (const char* name : {"haulout-default-", "haulout-default-01", "haulout-default-x", "haulout-default--1",
                           "haulout-default-1x", "haulout-default-99999999999999999999999", "other", ""})
    EXPECT_EQ(slot_index(all, name), std::nullopt) << name;
  EXPECT_EQ(slot_index(SlotGroup{"a"}, "haulout-a-b-1"), std::nullopt);
}

// The groups contain characters that a label may have and a DNS subdomain may not.
TEST(SlotNames, AreSubdomainsAndNeverTheSameForTwoGroups) {
  const std::vector<SlotGroup> groups = {{"default"},
                                         {"default", "eu-west-1a"},
                                         {"default", "Zone_A"},
                                         {"default", "zone-a"},
                                         {"default.eu-west-1a"},
                                         {"a", "b-0"},
                                         {"a-b"},
                                         {"a.b"},
                                         {"A"},
                                         {"x--a"},
                                         {"a--b"},
                                         {"a-2db"},
                                         {"x"},
                                         {"X--a"},
                                         {"x---2da"},
                                         {"default", "1"},
                                         {"default", "a.b"},
                                         {"default", "a-b"},
                                         {"a", "b.c"},
                                         {"a.b", "c"},
                                         {"a_b"}};
  std::set<std::string> names;
  for (const SlotGroup& group : groups) {
    const std::string name = slot_name(group, 7);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_THAT(name, ::testing::MatchesRegex("[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)?"));
    EXPECT_EQ(is_zone_slot(name), !group.zone.empty()) << name;
    for (const SlotGroup& other_group : groups)
      EXPECT_EQ(slot_index(other_group, name).has_value(), group == other_group) << name;
  }
  EXPECT_EQ(slot_name({"blue", "eu-west-1a"}, 0), "haulout-blue.eu-west-1a-0");
  EXPECT_EQ(slot_name({"Blue"}, 0), "haulout-x---42lue-0");
}

TEST(Groups, AreTheZoneAndThePool) {
  const std::map<std::string, std::string> labels{{"role", "Worker"}, {"zone", "a"}, {"empty", ""}};
  const auto groups = [&](const SlotGrouping& grouping) { return groups_of(grouping, "n1", labels); };
  EXPECT_THAT(*groups({}), ::testing::ElementsAre(SlotGroup{"default"}));
  EXPECT_THAT(*groups({.pool = "blue", .zone_label = "zone"}),
              ::testing::ElementsAre(SlotGroup{"blue", "a"}, SlotGroup{"blue"}));
  EXPECT_THAT(*groups({.pool_label = "role", .zone_label = "zone"}),
              ::testing::ElementsAre(SlotGroup{"Worker", "a"}, SlotGroup{"Worker"}));
}

// A node that lacks the label of its pool or zone gets an error instead of groups, because no limit would count it.
TEST(Groups, NeedTheirLabels) {
  const std::map<std::string, std::string> labels{{"long", std::string(63, '.')}, {"empty", ""}};
  const auto problem = [&](const SlotGrouping& grouping) {
    const auto groups = groups_of(grouping, "n1", labels);
    return groups ? std::string() : groups.error().message();
  };
  EXPECT_THAT(problem({.pool_label = "role"}),
              ::testing::AllOf(HasSubstr("n1"), HasSubstr("role"), HasSubstr("pool-label")));
  EXPECT_THAT(problem({.zone_label = "zone"}),
              ::testing::AllOf(HasSubstr("zone-label"), HasSubstr("kubectl label --overwrite node")));
  EXPECT_THAT(problem({.zone_label = "empty"}), HasSubstr("no value in label empty"));
  EXPECT_THAT(problem({.pool_label = "long", .zone_label = "long"}), HasSubstr("253"));
  EXPECT_EQ(problem({.zone_label = "long"}), "");
}

TEST(SlotLease, IsOwnedByItsNode) {
  const k8s::Lease lease = slot(3, me);
  EXPECT_EQ(lease.name, "haulout-default-3");
  EXPECT_EQ(lease.holder, "n1/u1");
  ASSERT_TRUE(lease.owner);
  EXPECT_EQ(lease.owner->kind, "Node");
  EXPECT_EQ(lease.owner->uid, "u1");
  EXPECT_EQ(lease.labels.at("haulout.dev/pool"), "default");
}

// A Lease names its holder by name and UID. So a node does not hold the slot of an earlier node of the same name.
TEST(SlotLease, IsNotHeldByANamesake) {
  EXPECT_TRUE(held_by(slot(0, me), me));
  EXPECT_FALSE(held_by(slot(0, me), OwnNode{"n1", "another"}));
  EXPECT_FALSE(held_by(slot(0, OwnNode{"n11", "u1"}), me));
}

TEST(Choice, IsTheLowestFreeIndex) {
  EXPECT_EQ(choose_slot(view(1, {}), me).take, 0u);
  EXPECT_EQ(choose_slot(view(2, {slot(0, other(1))}), me).take, 1u);
  EXPECT_EQ(choose_slot(view(2, {slot(1, other(1))}), me).take, 0u);
  EXPECT_EQ(choose_slot(view(1, {slot(0, other(1), {"blue"})}), me).take, 0u);
}

TEST(Choice, StopsAtTheLimit) {
  EXPECT_EQ(choose_slot(view(0, {}), me).take, std::nullopt);
  EXPECT_THAT(choose_slot(view(0, {}), me).why, HasSubstr("max-unavailable"));
  const auto full = choose_slot(view(1, {slot(0, other(1))}), me);
  EXPECT_EQ(full.take, std::nullopt);
  EXPECT_THAT(full.why, HasSubstr("other1"));
  // The limit was lowered from three to one while a node held the slot with index 2. Indices above the limit count,
  // too.
  EXPECT_EQ(choose_slot(view(1, {slot(2, other(1))}), me).take, std::nullopt);
}

// A forgotten cordon, or a machine that is down, also makes a node unavailable.
TEST(Choice, CountsNodesThatAreOutWithoutASlot) {
  const auto choice = choose_slot(view(1, {}, {"broken"}), me);
  EXPECT_EQ(choice.take, std::nullopt);
  EXPECT_THAT(choice.why, HasSubstr("broken"));
  EXPECT_EQ(choose_slot(view(2, {}, {"broken"}), me).take, 0u);
  EXPECT_EQ(choose_slot(view(1, {}, {"n1"}), me).take, 0u);
  // A holder is counted once, even if it is cordoned.
  EXPECT_EQ(choose_slot(view(2, {slot(0, other(1))}, {"other1"}), me).take, 1u);
}

// The message names each unavailable node and the cause.
TEST(Choice, SaysWhoIsOutAndWhy) {
  GroupView one = view(1, {}, {"w19"});
  EXPECT_EQ(choose_slot(one, me).why,
            "of pool default, at most 1 node may be unavailable at a time, and 1 is: w19 (NotReady)");
  GroupView three = view(2, {slot(0, other(1)), slot(1, other(2))});
  three.out = {{"w18", "cordoned by jane"}};
  three.degraded = {{"other2", "RebootFailed"}};
  EXPECT_EQ(choose_slot(three, me).why,
            "of pool default, at most 2 nodes may be unavailable at a time, and 3 are: other1 (has the slot), other2 "
            "(degraded: RebootFailed, keeps its slot), w18 (cordoned by jane)");
  three.as_of = "17:41 UTC";
  EXPECT_THAT(choose_slot(three, me).why, HasSubstr("and 3 were at 17:41 UTC: other1"));
}

TEST(Choice, NamesFiveOfTheNodesThatAreOut) {
  const std::string five = "a (NotReady), b (NotReady), c (NotReady), d (NotReady), e (NotReady)";
  EXPECT_THAT(choose_slot(view(1, {}, {"a", "b", "c", "d", "e"}), me).why, ::testing::EndsWith("and 5 are: " + five));
  EXPECT_THAT(choose_slot(view(1, {}, {"a", "b", "c", "d", "e", "f", "g"}), me).why,
              ::testing::EndsWith("and 7 are: " + five + " and 2 more"));
}

// A stolen token may create any number of Leases in the name of one node. That node counts once.
TEST(Choice, CountsANodeWithSeveralTurnsOnce) {
  const GroupView greedy = view(2, {slot(0, other(1)), slot(1, other(1)), slot(2, other(1))});
  EXPECT_EQ(choose_slot(greedy, me).take, 3u);
  const GroupView taken = view(2, {slot(0, other(1)), slot(1, other(1)), slot(2, other(1)), slot(3, me)});
  EXPECT_EQ(must_give_back(taken, me), std::nullopt);
  EXPECT_EQ(choose_slot(taken, other(2)).take, std::nullopt) << "two nodes are out";
  const GroupView full = view(1, {slot(0, other(1)), slot(1, other(1))});
  EXPECT_EQ(choose_slot(full, me).take, std::nullopt) << "it is out all the same";
  EXPECT_THAT(choose_slot(full, me).why, HasSubstr("and 1 is: other1 (has 2 slots)"));
  const GroupView above = view(2, {slot(0, other(1)), slot(4, me)});
  EXPECT_TRUE(must_give_back(above, me)) << "no holder has taken a name too many";
}

// Leases without a holder may belong to different nodes. So each of them counts as one unavailable node.
TEST(Choice, CountsEachSlotWithoutAHolder) {
  std::vector<k8s::Lease> slots{slot(0, other(1)), slot(1, other(1))};
  for (k8s::Lease& each : slots) each.holder.clear();
  EXPECT_EQ(choose_slot(view(2, slots), me).take, std::nullopt);
  EXPECT_EQ(choose_slot(view(3, slots), me).take, 2u);
}

// A node whose token was stolen may take every index. It counts as one unavailable node.
TEST(Choice, LeavesTheOthersTheirsWhateverANodeHasTaken) {
  const auto greedy = [](std::size_t limit, std::vector<std::size_t> indices) {
    std::vector<k8s::Lease> slots;
    for (const std::size_t index : indices) slots.push_back(slot(index, other(1)));
    return view(limit, std::move(slots));
  };
  EXPECT_EQ(choose_slot(greedy(1, {0, 1, 2}), me).take, std::nullopt);
  EXPECT_EQ(choose_slot(greedy(3, {0, 1, 2}), me).take, 3u);
  EXPECT_EQ(choose_slot(greedy(3, {0, 1, 1000}), me).take, 2u);
  // Beside the node with the stolen token, two more nodes may be unavailable, but no third one.
  auto full = greedy(3, {0, 1, 2});
  full.slots.push_back(slot(3, other(2)));
  EXPECT_EQ(choose_slot(full, me).take, 4u);
  full.slots.push_back(slot(4, me));
  EXPECT_EQ(must_give_back(full, me), std::nullopt);
  full.slots.push_back(slot(5, other(3)));
  EXPECT_EQ(choose_slot(full, OwnNode{"n9", "u9"}).take, std::nullopt);
  EXPECT_TRUE(must_give_back(full, me));
}

TEST(SecondLook, AfterTheSecondListASlotAboveTheLimitIsReleased) {
  EXPECT_EQ(must_give_back(view(1, {slot(0, me)}), me), std::nullopt);
  EXPECT_EQ(must_give_back(view(2, {slot(0, me), slot(1, other(1))}), me), std::nullopt);
  EXPECT_TRUE(must_give_back(view(1, {slot(0, me), slot(1, other(1))}), me));
  EXPECT_TRUE(must_give_back(view(1, {slot(1, me)}), me));
  EXPECT_TRUE(must_give_back(view(1, {slot(0, me)}, {"broken"}), me));
  EXPECT_TRUE(must_give_back(view(1, {}), me));
  // This node itself is the unavailable one.
  EXPECT_EQ(must_give_back(view(1, {slot(0, me)}, {"n1"}), me), std::nullopt);
}

}  // namespace
}  // namespace haulout::agent
