#include "agent/service/options_of_config.hpp"

#include <gmock/gmock.h>

#include "agent/config/option_table.hpp"
#include "tests/agent/config/support.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using drain::FitPolicy;
using drain::Treatment;
using drain::VolumeWait;
using ::testing::IsEmpty;

// An option, a value for it, and a check that the agent's options have this value.
struct Arrival {
  const char* option;
  const char* value;
  bool (*arrived)(const AgentOptions&);
};

const Arrival arrivals[] = {
    {"max-concurrent", "7", [](const AgentOptions& o) { return o.drain.max_concurrent == 7; }},
    {"drain-deadline", "11m", [](const AgentOptions& o) { return o.drain.timeout == 11min; }},
    {"settle", "13s", [](const AgentOptions& o) { return o.drain.settle == 13s; }},
    {"check-fit", "block", [](const AgentOptions& o) { return o.drain.fit == FitPolicy::block; }},
    {"emptydir", "refuse", [](const AgentOptions& o) { return o.drain.policy.empty_dir == Treatment::refuse; }},
    {"unmanaged", "skip", [](const AgentOptions& o) { return o.drain.policy.unmanaged == Treatment::skip; }},
    {"finished", "evict", [](const AgentOptions& o) { return o.drain.policy.finished == Treatment::evict; }},
    {"ignore-do-not-disrupt", "true",
     [](const AgentOptions& o) { return o.drain.policy.do_not_disrupt == Treatment::evict; }},
    {"pinned", "leave", [](const AgentOptions& o) { return o.drain.policy.pinned == Treatment::skip; }},
    {"leave-pods", "app=typha",
     [](const AgentOptions& o) {
       return o.drain.policy.leave.size() == 1 && o.drain.policy.leave[0].matches({{"app", "typha"}});
     }},
    {"evict-daemonset-pods", "app=logs",
     [](const AgentOptions& o) {
       return o.drain.policy.evict_daemon_sets.size() == 1 &&
              o.drain.policy.evict_daemon_sets[0].matches({{"app", "logs"}});
     }},
    {"pod-rule", "kind:Job=last",
     [](const AgentOptions& o) {
       return o.drain.policy.rules.size() == 1 && o.drain.policy.rules[0].kind == "Job" &&
              o.drain.policy.rules[0].action == drain::PodAction::last;
     }},
    {"cluster-api-labels", "all",
     [](const AgentOptions& o) { return o.drain.policy.cluster_api_labels == drain::ClusterApiLabels::all; }},
    {"gangs", "refuse", [](const AgentOptions& o) { return o.drain.policy.gangs == Treatment::refuse; }},
    {"drain-order", "app=db=10",
     [](const AgentOptions& o) {
       return o.drain.order.size() == 1 && o.drain.order[0].selector.matches({{"app", "db"}}) &&
              o.drain.order[0].order == 10;
     }},
    {"wait-volumes", "false", [](const AgentOptions& o) { return o.drain.volumes == VolumeWait::off; }},
    {"volume-limit", "17s", [](const AgentOptions& o) { return o.drain.volume_limit == 17s; }},
    {"stuck-volume", "fail", [](const AgentOptions& o) { return o.drain.end_at_volume_limit; }},
    {"serialize-volumes", "true",
     [](const AgentOptions& o) { return o.drain.volume_turns == VolumeWait::if_permitted; }},
    {"reattach-limit", "19s", [](const AgentOptions& o) { return o.drain.reattach_limit == 19s; }},
    {"max-unavailable-per-controller", "30%",
     [](const AgentOptions& o) {
       const auto& share = o.drain.guards.max_unavailable;
       return share && share->value == 30 && share->percent;
     }},
    {"single-replica", "block",
     [](const AgentOptions& o) { return o.drain.guards.single_replica == drain::SingleReplica::block; }},
    {"surge", "closed-budget",
     [](const AgentOptions& o) { return o.drain.guards.surge == drain::Surge::closed_budget; }},
    {"eviction-requests", "responders",
     [](const AgentOptions& o) { return o.drain.eviction_requests == drain::EvictionRequests::responders; }},
    {"eviction-request-limit", "26m", [](const AgentOptions& o) { return o.drain.eviction_request_limit == 26min; }},
    {"surge-limit", "21m", [](const AgentOptions& o) { return o.drain.guards.surge_limit == 21min; }},
    {"canary", "23s", [](const AgentOptions& o) { return o.drain.guards.canary == 23s; }},
    {"lb-drain-wait", "29s", [](const AgentOptions& o) { return o.lb_drain_wait == 29s; }},
    {"hook-limit", "31s", [](const AgentOptions& o) { return o.hooks.limit == 31s; }},
    {"hook-failure", "continue", [](const AgentOptions& o) { return !o.hooks.stop; }},
    {"soak", "37s", [](const AgentOptions& o) { return o.times.soak == 37s; }},
    {"ramp", "1,2", [](const AgentOptions& o) { return o.ramp; }},
    {"reboot-limit", "41m", [](const AgentOptions& o) { return o.times.reboot_limit == 41min; }},
    {"verify-limit", "43m", [](const AgentOptions& o) { return o.times.verify_limit == 43min; }},
    {"verify-condition", "NetworkReady=Unknown",
     [](const AgentOptions& o) { return o.conditions == std::vector<WantedCondition>{{"NetworkReady", "Unknown"}}; }},
    {"hold-autoscalers", "false", [](const AgentOptions& o) { return !o.hold_autoscalers; }},
    {"waiting-taint", "example.com/waits=yes",
     [](const AgentOptions& o) { return o.waiting_taint == WaitingTaint{"example.com/waits", "yes"}; }},
    {"backoff", "47m", [](const AgentOptions& o) { return o.times.backoff == 47min; }},
};

TEST(OptionsOfConfig, AHaltDependsOnTheVersionToo) {
  AgentConfig config;
  EXPECT_FALSE(agent_options_of(config).ramp);
  config.halt_after = 2;
  EXPECT_TRUE(agent_options_of(config).ramp);
}

// Sets each option alone. No other option and no default gives a field the value of the option's row.
TEST(OptionsOfConfig, EachOptionArrivesAlone) {
  for (const Arrival& given : arrivals) {
    const AgentConfig config = config_of({{given.option, given.value}});
    const AgentOptions options = agent_options_of(config);
    for (const Arrival& other : arrivals)
      EXPECT_EQ(other.arrived(options), &other == &given)
          << "--" << given.option << "=" << given.value << " is given; look at " << other.option;
  }
}

TEST(OptionsOfConfig, PackageUpdates) {
  const AgentOptions fresh = agent_options_of(AgentConfig());
  EXPECT_EQ(fresh.times.update_limit, LifecycleTimes().update_limit);
  EXPECT_EQ(fresh.update_attempts, default_update_attempts);
  const AgentConfig config = config_of({{"update", "after-drain"}, {"update-limit", "53m"}, {"update-attempts", "7"}});
  const AgentOptions options = agent_options_of(config);
  EXPECT_EQ(options.times.update_limit, 53min);
  EXPECT_EQ(options.update_attempts, 7u);
  EXPECT_FALSE(fresh.stages_first);
  EXPECT_FALSE(options.stages_first);
  EXPECT_TRUE(agent_options_of(config_of({{"update", "before-drain"}})).stages_first);
}

// A new option of the drain or of the hooks needs a row above. `hooks-dir` is excluded, because the host uses it.
TEST(OptionsOfConfig, EachOptionOfTheDrainAndOfTheHooksIsLookedFor) {
  std::vector<std::string> missing;
  for (const OptionGroup& group : option_groups()) {
    if (group.title != "The drain" && group.title != "Hooks") continue;
    for (const Option& option : group.options) {
      const bool found = std::ranges::any_of(arrivals, [&](const Arrival& row) { return option.name == row.option; });
      if (!found && option.name != "hooks-dir") missing.push_back(std::string(option.name));
    }
  }
  EXPECT_THAT(missing, IsEmpty());
}

TEST(SuitVolumes, WhatMayBeSeenIsRequiredAndWhatMayNotIsNotWaitedFor) {
  struct Row {
    bool wait, turns, permitted;
    VolumeWait volumes, volume_turns;
  };
  const Row table[] = {
      {true, false, true, VolumeWait::required, VolumeWait::off},
      {true, true, true, VolumeWait::required, VolumeWait::required},
      {false, true, true, VolumeWait::off, VolumeWait::required},
      {true, true, false, VolumeWait::off, VolumeWait::off},
  };
  for (const Row& row : table) {
    drain::Options options =
        config_of({{"wait-volumes", row.wait ? "true" : "false"}, {"serialize-volumes", row.turns ? "true" : "false"}})
            .drain;
    suit_volumes(options, row.permitted);
    EXPECT_EQ(options.volumes, row.volumes) << row.wait << row.turns << row.permitted;
    EXPECT_EQ(options.volume_turns, row.volume_turns) << row.wait << row.turns << row.permitted;
  }
}

}  // namespace
}  // namespace haulout::agent
