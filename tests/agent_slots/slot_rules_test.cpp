#include "agent/slots/slot_rules.hpp"

#include <gmock/gmock.h>

namespace haulout::agent {
namespace {

using testing::HasSubstr;

const OwnNode me{"n1", "u1"};

k8s::Lease slot(std::size_t index, const OwnNode& node, std::string_view pool = "default") {
  return slot_lease("haulout", pool, index, node, WallTime{});
}
OwnNode other(int i) {
  return {"other" + std::to_string(i), "uid" + std::to_string(i)};
}

TEST(SlotNames, BelongToOnePoolEach) {
  EXPECT_EQ(slot_index("default", "haulout-default-0"), 0u);
  EXPECT_EQ(slot_index("default", "haulout-default-17"), 17u);
  EXPECT_EQ(slot_index("a-b", "haulout-a-b-1"), 1u);
  for (const char* name : {"haulout-default-", "haulout-default-01", "haulout-default-x", "haulout-default--1",
                           "haulout-default-1x", "haulout-default-99999999999999999999999", "other", ""})
    EXPECT_EQ(slot_index("default", name), std::nullopt) << name;
  EXPECT_EQ(slot_index("a", "haulout-a-b-1"), std::nullopt);
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

// A ghost's turn: the node was replaced under the same name.
TEST(SlotLease, IsNotHeldByANamesake) {
  EXPECT_TRUE(held_by(slot(0, me), me));
  EXPECT_FALSE(held_by(slot(0, me), OwnNode{"n1", "another"}));
  EXPECT_FALSE(held_by(slot(0, OwnNode{"n11", "u1"}), me));
}

TEST(Choice, IsTheLowestFreeIndex) {
  EXPECT_EQ(choose_slot("default", {.slots = {}, .limit = 1}, me).take, 0u);
  EXPECT_EQ(choose_slot("default", {.slots = {slot(0, other(1))}, .limit = 2}, me).take, 1u);
  EXPECT_EQ(choose_slot("default", {.slots = {slot(1, other(1))}, .limit = 2}, me).take, 0u);
  EXPECT_EQ(choose_slot("default", {.slots = {slot(0, other(1), "blue")}, .limit = 1}, me).take, 0u);
}

TEST(Choice, StopsAtTheLimit) {
  EXPECT_EQ(choose_slot("default", {.slots = {}, .limit = 0}, me).take, std::nullopt);
  const auto full = choose_slot("default", {.slots = {slot(0, other(1))}, .limit = 1}, me);
  EXPECT_EQ(full.take, std::nullopt);
  EXPECT_THAT(full.why, HasSubstr("other1"));
  // Lowered from three to one while two are out: both indices count, also those above the limit.
  EXPECT_EQ(choose_slot("default", {.slots = {slot(2, other(1))}, .limit = 1}, me).take, std::nullopt);
}

// A cordon that somebody forgot, or a node that is down, is a node out of service as well.
TEST(Choice, CountsNodesThatAreOutWithoutASlot) {
  const auto choice = choose_slot("default", {.slots = {}, .limit = 1, .out = {"broken"}}, me);
  EXPECT_EQ(choice.take, std::nullopt);
  EXPECT_THAT(choice.why, HasSubstr("broken"));
  EXPECT_EQ(choose_slot("default", {.slots = {}, .limit = 2, .out = {"broken"}}, me).take, 0u);
  EXPECT_EQ(choose_slot("default", {.slots = {}, .limit = 1, .out = {"n1"}}, me).take, 0u);
  // A holder is counted once, though it is cordoned.
  EXPECT_EQ(choose_slot("default", {.slots = {slot(0, other(1))}, .limit = 2, .out = {"other1"}}, me).take, 1u);
}

TEST(SecondLook, GivesBackWhatIsTooMuch) {
  EXPECT_EQ(must_give_back("default", {.slots = {slot(0, me)}, .limit = 1}, me), std::nullopt);
  EXPECT_EQ(must_give_back("default", {.slots = {slot(0, me), slot(1, other(1))}, .limit = 2}, me), std::nullopt);
  EXPECT_TRUE(must_give_back("default", {.slots = {slot(0, me), slot(1, other(1))}, .limit = 1}, me));
  EXPECT_TRUE(must_give_back("default", {.slots = {slot(1, me)}, .limit = 1}, me));
  EXPECT_TRUE(must_give_back("default", {.slots = {slot(0, me)}, .limit = 1, .out = {"broken"}}, me));
  EXPECT_TRUE(must_give_back("default", {.slots = {}, .limit = 1}, me));
  // We are the node that is out.
  EXPECT_EQ(must_give_back("default", {.slots = {slot(0, me)}, .limit = 1, .out = {"n1"}}, me), std::nullopt);
}

}  // namespace
}  // namespace haulout::agent
