// Fleets of more nodes than AwakeMachines::small: only some of their agents run at a time. The result must be one that
// the agents of all nodes could have.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "cli/rehearse/rehearsal_text.hpp"
#include "rehearse/awake_machines.hpp"
#include "tests/rehearse/a_snapshot.hpp"

namespace haulout::rehearse {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::size_t size = AwakeMachines::small + 8;

// Each node has room for four pods, and one pod of a ReplicaSet.
class LargeFleetTest : public ::testing::Test, protected ASnapshot {
 protected:
  LargeFleetTest() {
    items.push_back(workload("ReplicaSet", "web", {{"replicas", size}}));
    for (std::size_t i = 0; i < size; ++i) {
      add_node(name_of(i), "2");
      items.push_back(pod(fmt::format("web-{}", i), "ReplicaSet", "web", "500m", name_of(i)));
    }
    input.snapshot.read_at = WallTime(std::chrono::seconds(1'800'000'000));  // Fri 2027-01-15 08:00:00 UTC
    input.give_up = 1h;
  }
  static std::string name_of(std::size_t index) { return fmt::format("n{}", index); }

  FleetRehearsal play() {
    input.snapshot.documents = {{document()}};
    auto result = rehearse_fleet(input);
    if (!result) throw std::runtime_error(result.error().message());
    return *std::move(result);
  }
  static std::size_t updated(const FleetRehearsal& rehearsal) {
    return static_cast<std::size_t>(std::count_if(rehearsal.nodes.begin(), rehearsal.nodes.end(), [](const auto& node) {
      return node.updated && node.state == agent::State::idle;
    }));
  }
  static std::string lines_of(const FleetRehearsal& rehearsal) {
    std::string text;
    for (const std::string& line : cli::fleet_lines(rehearsal)) text += line + '\n';
    return text;
  }

  FleetInput input;
};

TEST_F(LargeFleetTest, EachNodeIsUpdatedOneAfterTheOther) {
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.end, FleetEnd::over) << lines_of(rehearsal);
  EXPECT_EQ(updated(rehearsal), size);
  EXPECT_EQ(rehearsal.most_out, 1u);
  EXPECT_EQ(cli::exit_code(rehearsal), 0);
  std::set<WallTime> turns;
  for (const FleetNode& node : rehearsal.nodes) {
    ASSERT_TRUE(turn_of(node)) << node.name;
    turns.insert(*turn_of(node));
    EXPECT_LE(node.phases.front().from - rehearsal.began, 1s) << "it waits from the beginning";
    for (std::size_t i = 1; i < node.phases.size(); ++i)
      EXPECT_EQ(node.phases[i - 1].until, node.phases[i].from) << node.name;
  }
  EXPECT_THAT(turns, SizeIs(size));
  // A slot is free for no longer than the agents that wait for it take to notice.
  const WallTime last = *turn_of(rehearsal.nodes.back());
  Duration out{};
  for (const FleetNode& node : rehearsal.nodes) out += out_of_service(node, rehearsal.ended);
  EXPECT_LE(last - rehearsal.began, out + size * 5s);
}

TEST_F(LargeFleetTest, TellsHowFarItHasCome) {
  using Step = StepProgress::Step;
  std::vector<StepProgress> told;
  input.on_progress = [&](const StepProgress& progress) { told.push_back(progress); };
  const FleetRehearsal rehearsal = play();
  const auto first = std::ranges::find(told, Step::rehearsing, &StepProgress::step);
  ASSERT_EQ(first - told.begin(), std::ssize(items)) << "each object that was read";
  EXPECT_EQ(told[items.size() - 1].done, items.size());
  ASSERT_NE(first, told.end());
  EXPECT_EQ(first->done, 0u);
  EXPECT_EQ(told.back().done, updated(rehearsal));
  EXPECT_TRUE(std::ranges::is_sorted(first, told.end(), {}, &StepProgress::done));
  EXPECT_TRUE(std::all_of(first, told.end(), [](const auto& each) { return each.total == size; }));
}

TEST_F(LargeFleetTest, AsManyNodesAreOutAsTheLimitAllows) {
  input.config.max_unavailable = "25%";
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.end, FleetEnd::over) << lines_of(rehearsal);
  EXPECT_EQ(updated(rehearsal), size);
  EXPECT_EQ(rehearsal.most_out, size / 4);
}

TEST_F(LargeFleetTest, NodesThatPeopleHaveCordonedHoldNobodyUp) {
  const std::size_t cordoned = AwakeMachines::competitors + 5;
  for (std::size_t i = 0; i < cordoned; ++i) item(name_of(i))["spec"]["unschedulable"] = true;
  input.config.max_unavailable = std::to_string(cordoned + 1);
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.end, FleetEnd::stuck) << lines_of(rehearsal);
  EXPECT_EQ(updated(rehearsal), size - cordoned);
}

TEST_F(LargeFleetTest, ADrainThatNeverEndsIsNamedByEachNodeThatWaits) {
  add_budget(size);
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.end, FleetEnd::stuck);
  EXPECT_EQ(updated(rehearsal), 0u);
  const FleetNode& first = rehearsal.nodes.front();
  EXPECT_EQ(first.state, agent::State::draining);
  for (std::size_t i = 1; i < size; ++i) {
    EXPECT_EQ(rehearsal.nodes[i].state, agent::State::waiting) << rehearsal.nodes[i].name;
    EXPECT_EQ(rehearsal.nodes[i].reason, "WaitingForSlot") << rehearsal.nodes[i].name;
    EXPECT_THAT(rehearsal.nodes[i].message, HasSubstr(first.name)) << rehearsal.nodes[i].name;
  }
}

TEST_F(LargeFleetTest, TheUpdateGoesOnInTheNextWindow) {
  input.config.windows = {"01:00+1h"};
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.end, FleetEnd::over) << lines_of(rehearsal);
  EXPECT_EQ(updated(rehearsal), size);
  EXPECT_GE(rehearsal.ended - rehearsal.began, 24h);
}

TEST_F(LargeFleetTest, AWindowThatNeverOpensIsNamedByEachNode) {
  input.config.blackouts = {"2027-01-01..2027-12-31"};
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.end, FleetEnd::horizon);
  for (const FleetNode& node : rehearsal.nodes) {
    EXPECT_EQ(node.state, agent::State::pending) << node.name;
    EXPECT_EQ(node.reason, "OutsideWindow") << node.name;
  }
}

TEST_F(LargeFleetTest, WavesComeOneAfterTheOther) {
  input.config.ramp = "1,10%";
  input.config.max_unavailable = "10";
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.end, FleetEnd::over) << lines_of(rehearsal);
  EXPECT_EQ(updated(rehearsal), size);
  const auto started_by = [&](std::size_t index) { return *turn_of(rehearsal.nodes[index]); };
  EXPECT_GE(started_by(1) - started_by(0), input.reboot_time) << "the second wave waits for the first";
  EXPECT_GE(started_by(5) - started_by(1), input.reboot_time) << "the second wave has four nodes";
}

// The nodes of another pool do not wait for a pool whose drain never ends.
TEST_F(LargeFleetTest, EachPoolHasAgentsOfItsOwn) {
  for (std::size_t i = 0; i < size; ++i) item(name_of(i))["metadata"]["labels"]["team"] = "web";
  item("web")["spec"]["template"]["spec"]["nodeSelector"] = {{"team", "web"}};
  for (const char* name : {"o1", "o2"}) {
    add_node(name, "2");
    item(name)["metadata"]["labels"]["team"] = "other";
  }
  add_budget(size);
  input.config.pool_label = "team";
  const FleetRehearsal rehearsal = play();
  EXPECT_EQ(rehearsal.end, FleetEnd::stuck);
  EXPECT_EQ(updated(rehearsal), 2u) << lines_of(rehearsal);
}

}  // namespace
}  // namespace haulout::rehearse
