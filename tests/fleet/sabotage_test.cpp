// Tests that the invariants detect faults: the agents and machines here are broken on purpose.
#include "tests/fleet/seeded_fleet.hpp"
#include "tests/support/broken_wire.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using haulout::testing::BrokenWire;
using haulout::testing::delete_instead;
using haulout::testing::name_no_instance;
using ::testing::Contains;
using ::testing::HasSubstr;

class BrokenSlots : public agent::Slots {
 public:
  explicit BrokenSlots(agent::Slots& sound) : sound_(sound) {}
  std::string name() const override { return sound_.name(); }
  void aim_at(const std::string& version) override { sound_.aim_at(version); }
  Task<agent::Turn> take(TimePoint deadline) override { co_return co_await sound_.take(deadline); }
  Task<agent::Turn> confirm(TimePoint deadline) override { co_return co_await sound_.confirm(deadline); }
  Task<> release(TimePoint deadline) override { co_return co_await sound_.release(deadline); }
  boost::asio::awaitable<void> changed() override { co_await sound_.changed(); }

 protected:
  agent::Slots& sound_;
};

// Says at any time that the node has a slot.
class EverybodysTurn final : public BrokenSlots {
 public:
  using BrokenSlots::BrokenSlots;
  Task<agent::Turn> take(TimePoint) override { co_return agent::Turn{.ours = true, .slot = "mine"}; }
  Task<agent::Turn> confirm(TimePoint) override { co_return agent::Turn{.ours = true, .slot = "mine"}; }
};

// Runs an action before each request for a slot, and another one after each release of a slot.
class MeddlingSlots final : public BrokenSlots {
 public:
  MeddlingSlots(agent::Slots& sound, std::function<void()> before_take, std::function<void()> after_release)
      : BrokenSlots(sound), before_take_(std::move(before_take)), after_release_(std::move(after_release)) {}
  Task<agent::Turn> take(TimePoint deadline) override {
    before_take_();
    co_return co_await sound_.take(deadline);
  }
  Task<> release(TimePoint deadline) override {
    auto released = co_await sound_.release(deadline);
    after_release_();
    co_return released;
  }

 private:
  std::function<void()> before_take_, after_release_;
};

struct Sabotage : Fleet {
  Sabotage() {
    for (const char* name : {"n4", "n5"}) add(a_node(name));
    add(a_workload("Deployment", "web", 10, {{"terminationGracePeriodSeconds", 5}}));
    add(a_budget("web", {{"minAvailable", 8}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}));
  }
  void three_machines(const MachinePlan& plan = {}) {
    for (const char* name : {"n1", "n2", "n3"}) machine(name, plan);
  }
  void break_wire(BrokenWire::Request request, BrokenWire::Answer answer) {
    wire_ = std::make_unique<BrokenWire>(cluster.api(), std::move(request), std::move(answer));
    way = [this] { return wire_.get(); };
  }
  void expect_caught(const char* what, Duration limit_of_run = 2h) {
    run_all(limit_of_run, false);
    EXPECT_THAT(checks.violations, Contains(HasSubstr(what))) << story();
  }

 private:
  std::unique_ptr<BrokenWire> wire_;
};

TEST_F(Sabotage, ASoundFleetViolatesNothing) {
  three_machines();
  run_fleet();
  EXPECT_GT(checks.evictions, 5u);
  EXPECT_EQ(checks.reboots, 3u);
}

TEST_F(Sabotage, CatchesARebootWithoutASlot) {
  decorate_slots = [](agent::Slots& sound) { return std::make_unique<EverybodysTurn>(sound); };
  three_machines();
  expect_caught("drains without a turn");
}

// As with other tools whose locks expire: after the first node breaks, the next one follows.
TEST_F(Sabotage, TurnsThatExpire) {
  decorate_slots = [this](agent::Slots& sound) {
    const auto expire = [this] {
      if (elapsed() < 20min) return;
      for (const Json& lease : cluster.all("leases")) cluster.remove("leases", "haulout", sim::name_of(lease));
    };
    return std::make_unique<MeddlingSlots>(sound, expire, [] {});
  };
  three_machines({.ignored_reboots = 9});
  expect_caught("was freed while it is degraded");
}

TEST_F(Sabotage, ACordonThatIsTakenBackWhoeverSetIt) {
  decorate_slots = [this](agent::Slots& sound) {
    return std::make_unique<MeddlingSlots>(sound, [] {}, [this] { cluster.uncordon("n1"); });
  };
  three_machines();
  cordon("n1");
  expect_caught("took back the cordon of a person on n1");
}

TEST_F(Sabotage, CatchesAnUpdateOfANodeThatAPersonHasCordoned) {
  checks.leaves_cordoned_nodes_alone = true;
  three_machines();
  cordon("n1");
  expect_caught("a reboot of n1, which a person had cordoned before");
}

// Two nodes of one pool take the slots of two pools.
TEST_F(Sabotage, CatchesAgentsThatCountOnePoolAsTwo) {
  for (const char* name : {"n1", "n2"}) {
    slots.grouping.pool = std::string("pool-of-") + name;
    options.pool = [pool = slots.grouping.pool](const k8s::Node&) { return pool; };
    machine(name);
    checks.pools[name] = "db";
  }
  expect_caught("drains although too many are out");
}

TEST_F(Sabotage, AProofThatSeesNoPods) {
  break_wire(BrokenWire::no_request, [](const sim::Call& call, Result<http::Response>& answer) {
    if (!answer || call.verb != "list" || !call.info || call.info->resource != "pods") return;
    Json body = Json::parse(answer->body);
    body["items"] = Json::array();
    answer->body = body.dump();
  });
  three_machines();
  after(5s, [] {});
  expect_caught("reboots under pod web");
}

TEST_F(Sabotage, EvictionsByNameAlone) {
  break_wire(name_no_instance, BrokenWire::no_answer);
  three_machines();
  expect_caught("that names no instance of it");
}

TEST_F(Sabotage, PodsThatAreDeleted) {
  break_wire(delete_instead, BrokenWire::no_answer);
  three_machines();
  expect_caught("an agent deleted pod web");
}

TEST_F(Sabotage, BudgetsThatAreNotHeld) {
  cluster.stop_disruption_controller();
  cluster.patch("poddisruptionbudgets", "shop", "web",
                {{"status", {{"disruptionsAllowed", 9}, {"observedGeneration", 1}}}});
  MachinePlan later;
  later.target.clear();
  three_machines(later);
  after(1min, [this] {
    for (const auto& each : machines) each->want("1.1");
  });
  limit = 3;
  expect_caught("budgets: web");
}

TEST_F(Sabotage, CatchesAReadyFileThatIsNotRemoved) {
  three_machines({.keeps_ready_file = true});
  expect_caught("and its ready file is there");
}

// The agent itself detects the false boot: the kubelet reports no new boot.
TEST(SabotageOfSeeds, CatchesAMachineThatClaimsABootThatDidNotHappen) {
  FleetPlan plan;
  plan.machines.resize(2);
  plan.machines[0].name = "n1";
  plan.machines[0].plan.claims_a_boot = true;
  plan.machines[1].name = "n2";
  const SeededOutcome outcome = SeededFleet(plan).play();
  EXPECT_THAT(outcome.violations, Contains(HasSubstr("n1 has come to rest as degraded BootIdForeign")));
}

TEST(SabotageOfSeeds, CatchesAFleetThatMakesNoProgress) {
  FleetPlan plan;
  plan.machines.resize(1);
  plan.machines[0].name = "n1";
  plan.machines[0].plan.unknown = true;
  const SeededOutcome outcome = SeededFleet(plan).play();
  EXPECT_THAT(outcome.violations, Contains(HasSubstr("n1 has come to rest as unknown")));
}

}  // namespace
}  // namespace haulout::fleet
