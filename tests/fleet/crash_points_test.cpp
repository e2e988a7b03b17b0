// P7: plays each scenario again and kills the agent once: at one of its requests, before the server receives it or
// after the server has carried it out, or right before one of its timers is due. The next agent continues, and the
// result is the same.
//   HAULOUT_CRASH_POINTS=N|all   number of crash points for each scenario, spread evenly (default 6)
#include <fmt/format.h>

#include <cstdlib>

#include "agent/gates/node_gates.hpp"
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;

struct Open : Fleet {
  void TestBody() override {}
  using Fleet::add;
  using Fleet::after;
  using Fleet::checks;
  using Fleet::clock;
  using Fleet::cluster;
  using Fleet::cordon;
  using Fleet::gates;
  using Fleet::label;
  using Fleet::limit;
  using Fleet::machine;
  using Fleet::options;
  using Fleet::rng;
  using Fleet::run_all;
  using Fleet::slots_held;
  using Fleet::start;
  using Fleet::state;
  using Fleet::story;
  using Fleet::uncordon;
  using Fleet::unschedulable;

  void web(int replicas) { add(a_workload("Deployment", "web", replicas, {{"terminationGracePeriodSeconds", 5}})); }
  void held_pod() {
    PodSpec held;
    held.labels = {{"app", "held"}};
    add(a_pod("held-0", held));
    add(a_budget("held", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "held"}}}}}}));
  }
  // Adds a Deployment whose pods are on n1 at first, behind a budget that allows no disruption, and lets agents replace
  // its pods before they evict them. It is a violation if fewer pods are Ready at any time after they all were.
  void surged_web(int replicas) {
    checks.surges = true;
    options.drain.guards.surge = drain::Surge::all;
    options.drain.guards.surge_limit = 1min;
    Json deployment = a_workload("Deployment", "web", replicas, {{"terminationGracePeriodSeconds", 5}},
                                 {{"sim.haulout.dev/prefers-node", "n1"}});
    deployment["metadata"]["annotations"]["sim.haulout.dev/template-hash"] = "true";
    add(deployment);
    add(a_budget("web", {{"maxUnavailable", 0}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
    cluster.on_change([this, replicas, reached = false](const sim::Change& change) mutable {
      if (change.key.resource != "pods") return;
      const auto pods = cluster.all("pods");
      const auto ready = std::count_if(pods.begin(), pods.end(), [](const Json& pod) {
        return sim::name_of(pod).starts_with("web-") && !sim::terminating(pod) && sim::pod_ready(pod);
      });
      reached = reached || ready >= replicas;
      if (reached && ready < replicas) checks.violated(fmt::format("surge: {} of {} pods are Ready", ready, replicas));
    });
  }
  // Returns the names of the pods that agents have surged and not given back.
  std::vector<std::string> marked() const {
    std::vector<std::string> names;
    for (const Json& pod : cluster.all("pods"))
      if (!sim::annotation(pod, "haulout.dev/surged").empty()) names.push_back(sim::name_of(pod));
    return names;
  }
  // Number of taints and marks of agents on n1 (--waiting-taint). Only agents write the time of a taint of this key.
  std::size_t waiting_taints() const {
    const Json n1 = cluster.get("nodes", "", "n1");
    std::size_t found = sim::annotation(n1, "haulout.dev/waiting-taint").empty() ? 0 : 1;
    for (const Json& taint : sim::at(n1, "/spec/taints"))
      if (taint.at("key") == "example.com/waits") ++found;
    return found;
  }
  void annotate(const std::string& node, const std::string& key, Json value) {
    cluster.patch("nodes", "", node, {{"metadata", {{"annotations", {{key, std::move(value)}}}}}});
  }
};

// Simulates a program that answers the hook after the drain, 5 s after it gets the ticket.
void answer_hook(Open& fleet, const sim::Change& change) {
  if (change.key.resource != "nodes" || change.key.name != "n1" || change.type == sim::ChangeType::deleted) return;
  const Json annotations = (*change.object)["metadata"].value("annotations", Json::object());
  const std::string ticket = annotations.value("haulout.dev/hook", "");
  if (!ticket.empty())
    fleet.cluster.after(5s, [&fleet, ticket] { fleet.annotate("n1", "hook-done.haulout.dev/after-drain.x", ticket); });
}

struct Crash {
  CrashPoint at_request{};
  Duration at_time{};  // time since the start of the run; 0 means no kill at a time
  std::string text() const {
    if (at_time > 0s)
      return fmt::format("killed at {} µs", std::chrono::duration_cast<std::chrono::microseconds>(at_time).count());
    return fmt::format("killed {} request {}", at_request.after ? "after" : "at", at_request.request);
  }
};

// A machine on which two updates wait, which its agent installs after the drain.
MachinePlan with_updates(UpdatesPlan updates) {
  updates.on = true;
  updates.waiting = {"libssl3 3.0.15-1 to 3.0.16-1", "vim 1 to 2"};
  MachinePlan plan{.target = ""};
  plan.updates = std::move(updates);
  return plan;
}

// Two machines whose updates are images, with the real gates. n1 tries version 2.0 first if it `fails_first`, else n2;
// the version is rolled back there. Later it is offered to the other one, and then version 3.0.
Machine& with_a_failed_version(Open& fleet, bool fails_first) {
  fleet.limit = 2;
  fleet.checks.remembers_versions = true;
  fleet.gates = [&fleet](k8s::Client& client, const std::string& node) {
    return std::make_unique<agent::NodeGates>(client, fleet.rng, nullptr,
                                              agent::NodeGatesOptions{.node = node, .installs = true});
  };
  std::vector<Machine*> both;
  for (const char* name : {"n1", "n2"}) {
    MachinePlan plan{.target = ""};
    plan.updates = {.on = true, .before_drain = !fails_first};
    plan.rolls_back = fails_first == both.empty();
    both.push_back(&fleet.machine(name, plan));
  }
  const auto offer = [](Machine& machine, const std::string& version) {
    machine.plan().updates.image = version;
    machine.updates().add({machine.version() + " to " + version});
  };
  Machine& first = *both[fails_first ? 0 : 1];
  Machine& second = *both[fails_first ? 1 : 0];
  fleet.after(10s, [&first, offer] { offer(first, "2.0"); });
  fleet.after(20min, [&second, offer] { offer(second, "2.0"); });
  fleet.after(40min, [&second, offer] {
    second.plan().updates.waiting.clear();
    offer(second, "3.0");
  });
  return *both[0];
}

// One scenario, and the state in which it must end although the test kills the agent of n1.
struct Row {
  const char* name;
  std::function<Machine&(Open&)> stage;
  const char* state = "idle";
  const char* version = "1.1";
  bool cordoned = false;
  std::size_t slots = 0;
  std::size_t boots = 1;
  Duration limit = 3h;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      {.name = "update",
       .stage = [](Open& fleet) -> Machine& {
         Machine& n1 = fleet.machine("n1");
         fleet.machine("n2", {.target = ""});
         fleet.web(5);
         fleet.add(a_budget("web", {{"minAvailable", 4}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
         return n1;
       }},
      {.name = "one after the other",
       .stage = [](Open& fleet) -> Machine& {
         Machine& n1 = fleet.machine("n1");
         fleet.machine("n2");
         fleet.options.times.soak = 1min;
         return n1;
       }},
      // The hook takes longer than the time limit of the verification.
      {.name = "a hook and a readiness taint after the boot",
       .stage = [](Open& fleet) -> Machine& {
         fleet.options.hooks.limit = 1h;
         fleet.options.times.soak = 1min;
         return fleet.machine("n1", {.readiness_takes = 30min, .hooks = {"after-boot/10-driver"}, .hook_takes = 20min});
       }},
      {.name = "a reboot that is accepted and does not happen",
       .stage = [](Open& fleet) -> Machine& { return fleet.machine("n1", {.ignored_reboots = 1}); }},
      {.name = "a refused reboot",
       .stage = [](Open& fleet) -> Machine& { return fleet.machine("n1", {.refused_reboots = 1}); }},
      {.name = "a reboot that never happens",
       .stage = [](Open& fleet) -> Machine& { return fleet.machine("n1", {.ignored_reboots = 99}); },
       .state = "degraded",
       .version = "1.0",
       .slots = 1,
       .boots = 0},
      {.name = "rolled back",
       .stage = [](Open& fleet) -> Machine& { return fleet.machine("n1", {.rolls_back = true}); },
       .state = "degraded",
       .version = "1.0",
       .cordoned = true,
       .slots = 1},
      {.name = "a drain that ends without draining",
       .stage = [](Open& fleet) -> Machine& {
         fleet.options.drain.timeout = 2min;
         fleet.held_pod();
         fleet.after(4min, [&fleet] { fleet.cluster.remove("poddisruptionbudgets", "shop", "held"); });
         return fleet.machine("n1");
       }},
      {.name = "pods that are replaced first",
       .stage = [](Open& fleet) -> Machine& {
         fleet.surged_web(2);
         Machine& n1 = fleet.machine("n1");
         fleet.machine("n2", {.target = ""});
         return n1;
       }},
      // Until a person uncordons n2, no replacement finds a node, and each drain ends at its deadline.
      {.name = "pods that cannot be replaced for a while",
       .stage = [](Open& fleet) -> Machine& {
         fleet.options.drain.timeout = 3min;
         fleet.surged_web(1);
         fleet.limit = 2;
         Machine& n1 = fleet.machine("n1");
         fleet.machine("n2", {.target = ""});
         fleet.cordon("n2");
         fleet.after(20min, [&fleet] { fleet.uncordon("n2"); });
         return n1;
       }},
      {.name = "a person's cordon",
       .stage = [](Open& fleet) -> Machine& {
         Machine& n1 = fleet.machine("n1");
         fleet.cordon("n1");
         return n1;
       },
       .cordoned = true},
      {.name = "a person uncordons",
       .stage = [](Open& fleet) -> Machine& {
         fleet.held_pod();
         fleet.after(1min, [&fleet] {
           fleet.uncordon("n1");
           fleet.cluster.remove("poddisruptionbudgets", "shop", "held");
         });
         return fleet.machine("n1");
       }},
      {.name = "somebody else reboots",
       .stage = [](Open& fleet) -> Machine& {
         Machine& n1 = fleet.machine("n1", {.methods = {}});
         PodSpec late;
         late.spec = {{"tolerations", {{{"operator", "Exists"}}}}};
         fleet.after(2min, [&fleet, late] { fleet.add(a_pod("late-0", late)); });
         fleet.after(20min, [&n1] { n1.power_cycle(); });
         return n1;
       }},
      {.name = "requested",
       .stage = [](Open& fleet) -> Machine& {
         fleet.after(30s, [&fleet] { fleet.annotate("n1", "haulout.dev/request", "reboot"); });
         return fleet.machine("n1", {.target = ""});
       },
       .version = "1.0"},
      {.name = "requested, and it never happens",
       .stage = [](Open& fleet) -> Machine& {
         fleet.after(30s, [&fleet] { fleet.annotate("n1", "haulout.dev/request", "reboot"); });
         return fleet.machine("n1", {.target = "", .ignored_reboots = 99});
       },
       .state = "degraded",
       .version = "1.0",
       .slots = 1,
       .boots = 0},
      {.name = "withdrawn",
       .stage = [](Open& fleet) -> Machine& {
         Machine& n1 = fleet.machine("n1", {.methods = {}});
         fleet.after(5min, [&n1] { n1.want(""); });
         return n1;
       },
       .version = "1.0",
       .boots = 0},
      {.name = "hooks and load balancers",
       .stage = [](Open& fleet) -> Machine& {
         fleet.options.lb_drain_wait = 1min;
         fleet.options.times.soak = 2min;
         fleet.cluster.on_change([&fleet](const sim::Change& change) { answer_hook(fleet, change); });
         fleet.after(1s, [&fleet] { fleet.annotate("n1", "hook.haulout.dev/after-drain.x", "limit=1h"); });
         return fleet.machine(
             "n1", {.hooks = {"before-drain/10-a", "after-drain/10-a", "after-boot/10-a", "before-release/10-a"}});
       }},
      {.name = "a taint while the node waits",
       .stage = [](Open& fleet) -> Machine& {
         fleet.options.waiting_taint = agent::WaitingTaint{"example.com/waits", "yes"};
         Machine& n1 = fleet.machine("n1");
         fleet.cluster.taint("n1", "example.com/other", "PreferNoSchedule");
         fleet.options.times.soak = 1min;
         return n1;
       }},
      {.name = "an API server that is away",
       .stage = [](Open& fleet) -> Machine& {
         fleet.after(4s, [&fleet] { fleet.cluster.restart(20min); });
         return fleet.machine("n1");
       }},
      {.name = "updates, then a reboot",
       .stage = [](Open& fleet) -> Machine& {
         Machine& n1 = fleet.machine("n1", with_updates({}));
         fleet.machine("n2", {.target = ""});
         fleet.web(3);
         return n1;
       }},
      {.name = "updates that need no reboot",
       .stage = [](Open& fleet) -> Machine& {
         Machine& n1 = fleet.machine("n1", with_updates({.need_reboot = false}));
         fleet.machine("n2", {.target = ""});
         fleet.web(3);
         return n1;
       },
       .version = "1.0",
       .boots = 0},
      {.name = "updates that the end of the agent interrupts",
       .stage = [](Open& fleet) -> Machine& {
         return fleet.machine("n1", with_updates({.takes = 30s, .outlives_agent = false}));
       }},
      {.name = "an installation that fails once",
       .stage = [](Open& fleet) -> Machine& { return fleet.machine("n1", with_updates({.failing = 1})); }},
      {.name = "an installation that always fails",
       .stage = [](Open& fleet) -> Machine& { return fleet.machine("n1", with_updates({.failing = 99})); },
       .state = "degraded",
       .version = "1.0",
       .slots = 1,
       .boots = 0},
      {.name = "a version that fails on this node",
       .stage = [](Open& fleet) -> Machine& { return with_a_failed_version(fleet, true); },
       .state = "degraded",
       .version = "1.0",
       .cordoned = true,
       .slots = 1},
      {.name = "a version that has failed on another node",
       .stage = [](Open& fleet) -> Machine& { return with_a_failed_version(fleet, false); },
       .version = "3.0",
       .slots = 1},
      {.name = "a Node that registers anew",
       .stage = [](Open& fleet) -> Machine& {
         fleet.after(3s, [&fleet] { fleet.checks.by_a_person([&fleet] { fleet.cluster.replace_node("n1"); }); });
         return fleet.machine("n1");
       }},
  };
  return all;
}

struct Played {
  std::size_t requests = 0;
  std::vector<Duration> timers;
};

Played play(const Row& row, const Crash& crash) {
  Open fleet;
  Machine& n1 = row.stage(fleet);
  n1.crash_at(crash.at_request);
  if (crash.at_time > 0s) fleet.after(crash.at_time, [&n1] { n1.kill_agent(); });
  fleet.run_all(row.limit, true);
  const std::string where = std::string(row.name) + ", " + crash.text() + "\n" + fleet.story();
  EXPECT_THAT(fleet.checks.violations, ::testing::IsEmpty()) << where;
  EXPECT_EQ(n1.version(), row.version) << where;
  EXPECT_EQ(fleet.state("n1"), row.state) << where;
  EXPECT_EQ(fleet.unschedulable("n1"), row.cordoned) << where;
  EXPECT_EQ(n1.boots(), row.boots) << where;
  EXPECT_EQ(fleet.slots_held(), row.slots) << where;
  EXPECT_EQ(fleet.label("n1", "node.kubernetes.io/exclude-from-external-load-balancers"), "") << where;
  EXPECT_THAT(fleet.marked(), ::testing::IsEmpty()) << where;
  EXPECT_EQ(fleet.waiting_taints(), 0u) << where;
  Played played{.requests = n1.requests(), .timers = {}};
  for (const TimePoint sent : n1.request_times())
    if (const Duration due = sent - fleet.start - 1us; due > 0s) played.timers.push_back(due);
  return played;
}

std::vector<Crash> crashes_of(const Played& sound) {
  std::vector<Crash> all;
  for (std::size_t k = 1; k <= sound.requests; ++k)
    for (const bool after : {false, true}) all.push_back({.at_request = {k, after}});
  for (const Duration due : sound.timers) all.push_back({.at_time = due});
  return all;
}

std::size_t crash_points_wanted() {
  const char* value = std::getenv("HAULOUT_CRASH_POINTS");
  if (!value || !*value) return 6;
  return std::string(value) == "all" ? SIZE_MAX : std::strtoul(value, nullptr, 10);
}

class P7_CrashOnly : public ::testing::TestWithParam<std::size_t> {};

TEST_P(P7_CrashOnly, KilledAnywhere) {
  const Row& row = rows()[GetParam()];
  const auto all = crashes_of(play(row, {}));
  ASSERT_GT(all.size(), 20u) << row.name;
  const std::size_t wanted = std::min(crash_points_wanted(), all.size());
  for (std::size_t i = 0; i < wanted && !HasFailure(); ++i) {
    // Spreads the crash points over the run. Each scenario begins at another point.
    play(row, all[(i * all.size() / wanted + GetParam() * 7) % all.size()]);
  }
}

INSTANTIATE_TEST_SUITE_P(Scenarios, P7_CrashOnly, ::testing::Range(std::size_t{0}, rows().size()));

}  // namespace
}  // namespace haulout::fleet
