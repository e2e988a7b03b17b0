// Tables of the functions that compare rehearsals of a fleet, without a rehearsal.
#include "rehearse/comparison.hpp"

#include <gmock/gmock.h>

namespace haulout::rehearse {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr WallTime began{std::chrono::seconds(1'800'000'000)};

OwnerCourse owner(const std::string& name, std::size_t replicas, std::size_t least_ready) {
  return {.owner = "shop/Deployment/" + name,
          .replicas = replicas,
          .is_replaced = true,
          .pods = replicas,
          .ready = replicas,
          .least_ready = least_ready,
          .least_at = began + 2min};
}

FleetFigures figures(std::optional<Duration> took, std::vector<OwnerCourse> owners = {},
                     std::vector<std::string> unfinished = {}) {
  FleetFigures result;
  result.began = began;
  result.took = took;
  result.nodes = 4;
  result.unfinished = std::move(unfinished);
  result.owners = std::move(owners);
  return result;
}

FleetNode node(const std::string& name, bool updated, agent::State state, std::chrono::seconds last) {
  return {.name = name,
          .left_out = "",
          .updated = updated,
          .state = state,
          .phases = {{agent::State::draining, began, began + last}, {state, began + last, std::nullopt}}};
}

TEST(Comparison, WhoIsHarmed) {
  const struct {
    const char* what;
    OwnerCourse owner;
    bool worse, harmed;
  } rows[] = {
      {"it lost nothing", owner("web", 3, 3), false, false},
      {"it lost some", owner("web", 3, 1), true, false},
      {"it lost all", owner("web", 3, 0), true, true},
      {"one replica cannot be kept", owner("web", 1, 0), false, false},
      {"its budget decides",
       [] {
         OwnerCourse each = owner("web", 3, 0);
         each.has_budget = true;
         return each;
       }(),
       true, false},
      {"it had none before",
       [] {
         OwnerCourse each = owner("web", 3, 0);
         each.ready = 0;
         return each;
       }(),
       false, false},
      {"a rehearsal does not replace its pods",
       [] {
         OwnerCourse each = owner("web", 3, 0);
         each.is_replaced = false;
         return each;
       }(),
       false, false},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(had_worse_moment(row.owner), row.worse) << row.what;
    EXPECT_EQ(is_harmed(row.owner), row.harmed) << row.what;
  }
}

TEST(Comparison, WhichBudgetIsHarmed) {
  const struct {
    std::int64_t desired, healthy, least;
    bool harmed;
  } rows[] = {{2, 3, 2, false}, {2, 3, 1, true}, {2, 1, 1, false}, {2, 1, 0, true}, {0, 3, 0, false}};
  for (const auto& row : rows)
    EXPECT_EQ(is_harmed(BudgetCourse{"shop/web", row.desired, row.healthy, row.least}), row.harmed)
        << row.desired << row.healthy << row.least;
}

TEST(Comparison, EvictionsPerPod) {
  OwnerCourse calm = owner("calm", 4, 4), busy = owner("busy", 2, 1), equal = owner("equal", 2, 1);
  EXPECT_EQ(evictions_of({calm}).most, nullptr);
  calm.evictions = 4;
  busy.evictions = equal.evictions = 3;
  const std::vector<OwnerCourse> owners{calm, equal, busy};
  const Evictions sum = evictions_of(owners);
  EXPECT_EQ(sum.evictions, 10u);
  EXPECT_EQ(sum.pods, 8u);
  EXPECT_EQ(sum.most, &owners[2]);
  EXPECT_DOUBLE_EQ(per_pod(sum.evictions, sum.pods), 1.25);
  EXPECT_DOUBLE_EQ(per_pod(0, 0), 0);
}

TEST(Comparison, WhatCountsOfARehearsal) {
  FleetRehearsal rehearsal;
  rehearsal.began = began;
  rehearsal.ended = began + 7h;
  rehearsal.end = FleetEnd::stuck;
  rehearsal.most_out = 2;
  rehearsal.nodes = {node("n3", true, agent::State::idle, 3min),
                     node("n1", true, agent::State::idle, 9min),
                     node("n4", false, agent::State::draining, 1h),
                     node("n2", true, agent::State::soaking, 20min),
                     {.name = "n5", .left_out = "it is not Ready"}};
  OwnerCourse waits = owner("a-waits", 1, 0), room = owner("b-room", 3, 3);
  waits.without_room = 2;
  waits.longest_without_room = 3min;
  room.without_room = 1;
  room.longest_without_room = 5min;
  rehearsal.owners = {waits, room, owner("c-half", 4, 2), owner("d-none", 4, 0), owner("e-third", 3, 1)};
  rehearsal.budgets = {{"shop/fine", 2, 3, 2, began}, {"shop/harmed", 2, 3, 1, began}};
  const FleetFigures result = figures_of(rehearsal);
  EXPECT_EQ(result.took, 9min) << "when the last complete node was complete";
  EXPECT_EQ(result.nodes, 4u);
  EXPECT_THAT(result.left_out, ElementsAre("n5 (it is not Ready)"));
  EXPECT_THAT(result.unfinished, ElementsAre("n2", "n4"));
  EXPECT_EQ(result.most_out, 2u);
  EXPECT_EQ(result.without_room, 3u);
  EXPECT_EQ(result.longest_without_room, 5min);
  std::vector<std::string> names;
  for (const OwnerCourse& each : result.owners) names.push_back(each.owner.substr(16, 1));
  EXPECT_THAT(names, ElementsAre("d", "e", "c", "a", "b"));
  ASSERT_THAT(result.harmed_budgets, SizeIs(1));
  EXPECT_EQ(result.harmed_budgets[0].budget, "shop/harmed");
}

TEST(Comparison, NoNodeThatIsUpdatedHasNoTime) {
  FleetRehearsal rehearsal;
  rehearsal.nodes = {node("n1", false, agent::State::draining, 1h)};
  EXPECT_EQ(figures_of(rehearsal).took, std::nullopt);
}

std::vector<std::string> texts_of(const std::vector<Objection>& objections) {
  std::vector<std::string> texts;
  for (const Objection& each : objections) texts.push_back(std::string(to_string(each.kind)) + " " + each.text);
  return texts;
}

TEST(Comparison, WhyASettingDoesNotQualify) {
  const FleetFigures reference = figures(2h, {owner("web", 3, 1)}, {"n9"});
  EXPECT_THAT(objections(reference, reference), IsEmpty());
  EXPECT_THAT(objections(figures(1h, {owner("web", 3, 1)}, {"n4"}), reference), IsEmpty());
  EXPECT_THAT(texts_of(objections(figures(1h, {}, {"n3", "n4"}), reference)),
              ElementsAre("unfinished 2 nodes not updated, 1 more than with the slowest setting: n3, n4"));
  EXPECT_THAT(texts_of(objections(figures(1h, {owner("web", 3, 0)}), reference)),
              ElementsAre("owner shop/Deployment/web has no budget, and none of its 3 replicas is Ready after 2m00s"));
  FleetFigures low = figures(1h);
  low.harmed_budgets = {{"shop/web", 2, 3, 1, began + 3min}};
  EXPECT_THAT(texts_of(objections(low, reference)),
              ElementsAre("budget PodDisruptionBudget shop/web has 1 healthy pod after 3m00s, but must keep 2"));
}

TEST(Comparison, WhoWaitsLongerForRoom) {
  const auto waiting = [](Duration longest, std::size_t pods = 1) {
    OwnerCourse each = owner("web", 3, 2);
    each.without_room = pods;
    each.longest_without_room = longest;
    return figures(1h, {each});
  };
  const struct {
    Duration now, before;
    bool longer;
  } rows[] = {{0s, 0s, false},    {10s, 0s, false},    {11s, 0s, true},    {20s, 9s, true},
              {20s, 10s, false},  {110s, 100s, false}, {111s, 100s, true}, {1h, 2h, false},
              {65min, 1h, false}, {66min, 1h, false},  {67min, 1h, true}};
  for (const auto& row : rows)
    EXPECT_EQ(objections(waiting(row.now), waiting(row.before)).size(), row.longer ? 1u : 0u)
        << row.now.count() << " " << row.before.count();
  EXPECT_THAT(
      texts_of(objections(waiting(5min), figures(2h))),
      ElementsAre("capacity shop/Deployment/web: a pod waits for capacity, up to 5m00s; with the slowest setting none "
                  "does"));
  EXPECT_THAT(
      texts_of(objections(waiting(5min, 2), waiting(1min))),
      ElementsAre("capacity shop/Deployment/web: 2 pods wait for capacity, up to 5m00s; with the slowest setting up to "
                  "1m00s"));
}

TEST(Comparison, TheFastestThatHarmsNobody) {
  const std::vector<OwnerCourse> harm{owner("web", 3, 0)};
  using Index = std::optional<std::size_t>;
  const struct {
    const char* what;
    std::vector<FleetFigures> settings;
    std::size_t reference;
    Index best, next_faster;
  } rows[] = {
      {"one", {figures(1h)}, 0, 0, std::nullopt},
      {"the faster", {figures(2h), figures(1h)}, 0, 1, std::nullopt},
      {"in any order", {figures(1h), figures(2h)}, 1, 0, std::nullopt},
      {"the fastest does harm", {figures(3h), figures(2h), figures(1h, harm)}, 0, 1, 2},
      {"the next faster of two", {figures(3h), figures(1h, harm), figures(2h, harm)}, 0, 0, 2},
      {"no faster worth the name", {figures(3h), figures(100min), figures(99min + 30s)}, 0, 1, std::nullopt},
      {"faster by more than a hundredth", {figures(3h), figures(100min), figures(98min)}, 0, 2, std::nullopt},
      {"all do harm", {figures(2h, harm), figures(1h, harm)}, 0, std::nullopt, std::nullopt},
      {"one node at a time updates none", {figures({}, {}, {"n1", "n2"}), figures(2h, {}, {"n1"})}, 1, 1, std::nullopt},
      {"none updates a node", {figures({}, {}, {"n1"}), figures({}, {}, {"n1"})}, 0, std::nullopt, std::nullopt},
      {"the faster leaves nodes", {figures(2h), figures(1h, {}, {"n1"})}, 0, 0, 1},
  };
  for (const auto& row : rows) {
    const Choice choice = choice_of(row.settings);
    EXPECT_EQ(choice.reference, row.reference) << row.what;
    EXPECT_EQ(choice.best, row.best) << row.what;
    EXPECT_EQ(choice.next_faster, row.next_faster) << row.what;
  }
}

// Returns the limits that the search tries if those up to `good` qualify.
std::vector<std::size_t> search(std::size_t good, std::size_t least, std::size_t most) {
  std::map<std::size_t, bool> tried;
  std::vector<std::size_t> order;
  while (const auto limit = next_limit(tried, least, most)) {
    order.push_back(*limit);
    if (!tried.emplace(*limit, *limit <= good).second || order.size() > 50) return {};
  }
  return order;
}

TEST(Comparison, TheSearchDoublesAndThenHalves) {
  EXPECT_THAT(search(0, 1, 40), ElementsAre(1)) << "nothing is gentler";
  EXPECT_THAT(search(40, 1, 40), ElementsAre(1, 2, 4, 8, 16, 32, 40));
  EXPECT_THAT(search(5, 1, 40), ElementsAre(1, 2, 4, 8, 6, 5));
  EXPECT_THAT(search(1, 1, 40), ElementsAre(1, 2));
  EXPECT_THAT(search(9, 3, 12), ElementsAre(3, 6, 12, 9, 10));
  EXPECT_THAT(search(1, 1, 1), ElementsAre(1));
  EXPECT_THAT(search(4, 2, 0), ElementsAre(2)) << "only pools of one node at a time";
}

TEST(Comparison, TheSearchEndsNearTheLimit) {
  for (std::size_t most = 1; most <= 300; ++most)
    for (const std::size_t good : {most / 3, most / 2, most - 1, most}) {
      if (good == 0) continue;
      const auto tried = search(good, 1, most);
      ASSERT_THAT(tried, ::testing::Not(IsEmpty())) << most << " " << good;
      std::size_t best = 0;
      for (const std::size_t limit : tried) best = limit <= good ? std::max(best, limit) : best;
      EXPECT_LE(good - best, best / 10) << most << " " << good;
    }
}

}  // namespace
}  // namespace haulout::rehearse
