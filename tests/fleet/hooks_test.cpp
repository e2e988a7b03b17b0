// Hooks: programs and people outside the agent take part at four points of an update.
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string annotation_of(const Json& node, const std::string& key) {
  const Json annotations = node["metadata"].value("annotations", Json());
  return annotations.is_object() ? annotations.value(key, "") : "";
}

struct Hooks : Fleet {
  void web() { add(a_workload("Deployment", "web", 2, {{"terminationGracePeriodSeconds", 5}})); }
  std::string annotation(const std::string& node_name, const std::string& key) {
    return annotation_of(node(node_name), key);
  }
  void annotate(const std::string& node_name, const std::string& key, Json value) {
    cluster.patch("nodes", "", node_name, {{"metadata", {{"annotations", {{key, std::move(value)}}}}}});
  }
  void ask(const std::string& hook, const std::string& value = "") {
    for (const auto& each : machines) annotate(each->node(), "hook.haulout.dev/" + hook, value);
  }
  // Simulates a program that answers each ticket of `hook` after a delay, as long as `present_` is true.
  void answer(const std::string& hook, Duration after_so_long, const std::string& more = "") {
    cluster.on_change([=, this](const sim::Change& change) {
      if (change.key.resource != "nodes" || change.type == sim::ChangeType::deleted) return;
      const std::string name = (*change.object)["metadata"]["name"];
      const std::string ticket = annotation_of(*change.object, "haulout.dev/hook");
      if (!ticket.starts_with(hook.substr(0, hook.find('.')) + "@") || !present_ ||
          !tickets_.insert(name + ticket).second)
        return;
      tickets.push_back(ticket);
      cluster.after(after_so_long, [=, this] { annotate(name, "hook-done.haulout.dev/" + hook, ticket + more); });
    });
  }
  std::size_t pods_on(const std::string& node_name) const {
    const auto pods = cluster.all("pods");
    return static_cast<std::size_t>(std::count_if(
        pods.begin(), pods.end(), [&](const Json& pod) { return pod["spec"].value("nodeName", "") == node_name; }));
  }

  bool present_ = true;
  std::set<std::string> tickets_;
  std::vector<std::string> tickets;
};

const std::vector<std::string> one_at_each_point{"before-drain/10-a", "after-drain/10-a", "after-boot/10-a",
                                                 "before-release/10-a"};

TEST_F(Hooks, AreRunWhereTheyBelong) {
  Machine& n1 = machine("n1", {.hooks = one_at_each_point});
  web();
  std::vector<std::string> seen;
  n1.on_hook = [&](const std::string& hook) {
    EXPECT_EQ(slots_held(), 1u) << hook;
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "WaitingForHook");
    seen.push_back(state("n1") + (unschedulable("n1") ? " cordoned" : "") + (pods_on("n1") ? " pods " : " empty ") +
                   n1.version());
  };
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(n1.hooks_run, one_at_each_point);
  EXPECT_THAT(seen, ElementsAre("draining pods 1.0", "draining cordoned empty 1.0", "verifying cordoned empty 1.1",
                                HasSubstr("soaking ")))
      << story();
  EXPECT_EQ(slots_held(), 0u);
}

TEST_F(Hooks, EachWhoAskedIsAskedAnewAndWaitedFor) {
  Machine& n1 = machine("n1");
  web();
  for (const char* hook : {"before-drain.rook", "after-drain.rook", "after-boot.rook", "before-release.rook"}) {
    ask(hook);
    answer(hook, 2min);
  }
  bool seen = false;
  after(90s, [&] {
    seen = true;
    EXPECT_EQ(state("n1"), "draining") << story();
    EXPECT_FALSE(unschedulable("n1"));
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "WaitingForHook");
    EXPECT_THAT(annotation("n1", "haulout.dev/message"), HasSubstr("before-drain.rook"));
  });
  run_fleet();
  EXPECT_TRUE(seen);
  expect_updated(n1);
  EXPECT_THAT(tickets, ElementsAre(HasSubstr("before-drain@"), HasSubstr("after-drain@"), HasSubstr("after-boot@"),
                                   HasSubstr("before-release@")));
  EXPECT_EQ(annotation("n1", "haulout.dev/hook"), "");
}

// The hook before the drain does not answer in time. The agent has changed nothing on the node yet, and changes
// nothing. The next attempt asks again with another ticket.
TEST_F(Hooks, NoAnswerBeforeTheDrainEndsTheAttempt) {
  Machine& n1 = machine("n1");
  web();
  ask("before-drain.rook", "limit=1m");
  present_ = false;
  answer("before-drain.rook", 10s);
  after(3min, [&] {
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "BackingOff");
    EXPECT_THAT(annotation("n1", "haulout.dev/message"), HasSubstr("before-drain.rook"));
    EXPECT_EQ(annotation("n1", "haulout.dev/hook"), "");
    EXPECT_FALSE(unschedulable("n1"));
    EXPECT_EQ(slots_held(), 0u);
    annotate("n1", "hook-done.haulout.dev/before-drain.rook", "before-drain@2020-01-01T00:00:00.000000Z");
    present_ = true;
  });
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(tickets.size(), 1u);
}

TEST_F(Hooks, AnAnnotationThatWouldNeverBeAskedStopsTheUpdate) {
  Machine& n1 = machine("n1");
  ask("pre-drain.rook");
  after(10min, [&] {
    EXPECT_EQ(n1.boots(), 0u);
    EXPECT_THAT(annotation("n1", "haulout.dev/message"), HasSubstr("pre-drain.rook"));
    annotate("n1", "hook.haulout.dev/pre-drain.rook", nullptr);
  });
  run_fleet();
  expect_updated(n1);
}

TEST_F(Hooks, AFailureAfterTheDrainGivesTheNodeBack) {
  Machine& n1 =
      machine("n1", {.hooks = {"after-drain/10-a", "after-drain/20-b"}, .failing_hooks = {"after-drain/10-a"}});
  web();
  after(4min, [&] {
    EXPECT_EQ(n1.boots(), 0u);
    EXPECT_THAT(states_of("n1"), Not(Contains("ready"))) << story();
    EXPECT_EQ(state("n1"), "pending");
    EXPECT_THAT(annotation("n1", "haulout.dev/message"), HasSubstr("no quorum"));
    EXPECT_FALSE(unschedulable("n1"));
    EXPECT_EQ(slots_held(), 0u);
    n1.plan().failing_hooks.clear();
  });
  run_fleet();
  expect_updated(n1);
  EXPECT_THAT(n1.hooks_run, ElementsAre("after-drain/10-a", "after-drain/10-a", "after-drain/20-b"));
}

TEST_F(Hooks, AFailureMayBeOverlooked) {
  options.hooks.stop = false;
  Machine& n1 =
      machine("n1", {.hooks = {"before-drain/10-a", "before-drain/20-b"}, .failing_hooks = {"before-drain/10-a"}});
  ask("before-drain.rook", "limit=1m");
  run_fleet();
  expect_updated(n1);
  EXPECT_THAT(n1.hooks_run, ElementsAre("before-drain/10-a", "before-drain/20-b"));
  EXPECT_THAT(story(), HasSubstr("no quorum"));
}

TEST_F(Hooks, AFailureAfterTheBootHoldsTheFleetUntilItPasses) {
  Machine& n1 = machine("n1", {.hooks = {"after-boot/10-a"}, .failing_hooks = {"after-boot/10-a"}});
  Machine& n2 = machine("n2", {.target = ""});
  after(10min, [&] {
    EXPECT_EQ(n1.hooks_run.size(), 1u) << "it is run again 10 minutes after it failed, not at once\n" << story();
    n2.want("1.1");
  });
  after(1h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "HookFailed");
    EXPECT_THAT(annotation("n1", "haulout.dev/message"), HasSubstr("no quorum"));
    EXPECT_TRUE(unschedulable("n1"));
    EXPECT_EQ(slots_held(), 1u);
    EXPECT_EQ(n2.boots(), 0u);
    EXPECT_LT(n1.hooks_run.size(), 8u);
    n1.plan().failing_hooks.clear();
  });
  run_fleet();
  for (const auto& each : machines) expect_updated(*each);
  EXPECT_EQ(slots_held(), 0u);
}

TEST_F(Hooks, ALateAnswerHealsTheNode) {
  Machine& n1 = machine("n1");
  ask("after-boot.rook", "limit=1m");
  answer("after-boot.rook", 1h);
  after(30min, [&] { EXPECT_EQ(state("n1"), "degraded") << story(); });
  after(70min, [] {});
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(tickets.size(), 1u);
}

TEST_F(Hooks, AFailureBeforeTheReleaseHoldsTheFleetButNotTheNode) {
  Machine& n1 = machine("n1", {.hooks = {"before-release/10-a"}, .failing_hooks = {"before-release/10-a"}});
  after(1h, [&] {
    EXPECT_EQ(state("n1"), "degraded") << story();
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "HookFailed");
    EXPECT_FALSE(unschedulable("n1"));
    EXPECT_EQ(slots_held(), 1u);
    n1.plan().failing_hooks.clear();
  });
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(slots_held(), 0u);
}

// The test deletes the agent's Lease while the watch of the Leases is silent. The agent must check its slot before it
// evicts: another node may have taken the slot, and then two nodes would be unavailable (P6).
TEST_F(Hooks, ATurnThatGoesDuringALongHookIsMissedBeforeTheFirstEviction) {
  Machine& n1 = machine("n1", {.hooks = {"before-drain/10-a"}, .hook_takes = 2min});
  web();
  bool taken = false;
  n1.on_hook = [&](const std::string&) {
    if (std::exchange(taken, true)) return;
    cluster.after(1min, [&] {
      cluster.silence_watches();
      checks.by_a_person([&] { cluster.remove("leases", "haulout", "haulout-default-0"); });
      EXPECT_EQ(slots_held(), 0u);
    });
  };
  std::size_t evicted = 0;
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.resource != "pods" || change.type == sim::ChangeType::deleted) return;
    if (!(*change.object)["metadata"].contains("deletionTimestamp")) return;
    ++evicted;
    EXPECT_EQ(slots_held(), 1u) << story();
  });
  run_fleet();
  expect_updated(n1);
  EXPECT_TRUE(taken);
  EXPECT_GT(evicted, 0u);
}

// The time until a hook is repaired does not count as duration of the update. Otherwise no window might be long enough
// for this node again.
TEST_F(Hooks, TheTimeUntilAHookIsMendedIsNotThatOfTheUpdate) {
  Machine& n1 = machine("n1", {.hooks = {"before-release/10-a"}, .failing_hooks = {"before-release/10-a"}});
  after(10h, [&] { n1.plan().failing_hooks.clear(); });
  std::size_t succeeded = 0;
  agent::Status before;
  n1.on_told = [&](const agent::Status& now) {
    if (before.state == agent::State::verifying && now.state == agent::State::uncordoning && !before.judged)
      ++succeeded;
    before = now;
  };
  run_fleet(12h);
  expect_updated(n1);
  EXPECT_EQ(succeeded, 1u) << story();
  const auto record =
      agent::decode_record(node("n1")["metadata"]["annotations"]["haulout.dev/record"].get<std::string>());
  ASSERT_EQ(record.durations.size(), 1u);
  EXPECT_LT(record.durations.front(), 10min);
}

// P7: a restarted agent continues to wait for the answer that its predecessor asked for, and runs no hook twice.
TEST_F(Hooks, ARestartedAgentGoesOnWaitingAndRunsNoPointTwice) {
  Machine& n1 = machine("n1", {.hooks = {"before-drain/10-a", "after-drain/10-a"}});
  ask("after-drain.rook", "limit=30m");
  answer("after-drain.rook", 20min);
  for (const Duration when : {5min, 10min, 15min}) after(when, [&] { n1.kill_agent(); });
  run_fleet();
  expect_updated(n1);
  EXPECT_EQ(tickets.size(), 1u);
  EXPECT_THAT(n1.hooks_run, ElementsAre("before-drain/10-a", "after-drain/10-a"));
}

TEST_F(Hooks, TheTimeOfAHookOutlivesTheAgent) {
  Machine& n1 = machine("n1");
  ask("before-drain.rook", "limit=10m");
  for (const Duration when : {3min, 6min, 9min}) after(when, [&] { n1.kill_agent(); });
  after(12min, [&] { EXPECT_EQ(label("n1", "haulout.dev/reason"), "BackingOff") << story(); });
  run_for(13min);
}

TEST_F(Hooks, UncordoningANodeThatWaitsForAHookIsRespected) {
  Machine& n1 = machine("n1");
  web();
  ask("after-drain.rook", "limit=2h");
  after(3min, [&] {
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "WaitingForHook") << story();
    cluster.uncordon("n1");
  });
  after(4min, [&] {
    EXPECT_EQ(state("n1"), "pending") << story();
    EXPECT_EQ(slots_held(), 0u);
    ask("after-drain.rook", "limit=1m,failure=continue");
  });
  run_fleet();
  expect_updated(n1);
}

}  // namespace
}  // namespace haulout::fleet
