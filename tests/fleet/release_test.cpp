// --release: another process than the agent gives everything back, in any state, and leaves no trace on the Node.
#include "agent/lifecycle/release.hpp"

#include "tests/fleet/fleet.hpp"
#include "tests/fleet/scripted_gates.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Notes each slot name that its user has read from the record and passes to remember().
class ToldSlots final : public agent::Slots {
 public:
  ToldSlots(agent::Slots& inner, std::vector<std::string>& told) : inner_(inner), told_(told) {}
  std::string name() const override { return name_.empty() ? inner_.name() : name_; }
  void remember(const std::string& slot) override { told_.push_back(slot); }
  void call(std::string name) { name_ = std::move(name); }
  Task<agent::Turn> take(TimePoint deadline) override { return inner_.take(deadline); }
  Task<agent::Turn> confirm(TimePoint deadline) override { return inner_.confirm(deadline); }
  Task<> release(TimePoint deadline) override { return inner_.release(deadline); }
  boost::asio::awaitable<void> changed() override { return inner_.changed(); }

 private:
  agent::Slots& inner_;
  std::vector<std::string>& told_;
  std::string name_;
};

constexpr const char* waiting_key = "example.com/waits";

class Release : public Fleet, public ::testing::WithParamInterface<const char*> {
 protected:
  void annotate(const std::string& key, const std::string& value) {
    cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{key, value}}}}}});
  }
  // Kills the agent in this state, and starts no other agent after it.
  void stop_in(const std::string& state) {
    cluster.on_change([this, state](const sim::Change& change) {
      if (change.key.resource != "nodes" || change.type == sim::ChangeType::deleted) return;
      const Json labels = (*change.object)["metadata"].value("labels", Json::object());
      if (labels.value("haulout.dev/state", "") != state || stopped_) return;
      stopped_ = true;
      cluster.after(delay, [this] {
        machines[0]->plan().agent_starts = 1000h;
        machines[0]->kill_agent();
      });
    });
  }
  agent::Released release() {
    agent::Released out;
    run(with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn(cluster.run());
      k8s::Client client(cluster.api(), clock, {.validation = k8s::FieldValidation::strict});
      const agent::OwnNode own{"n1", node("n1").is_null() ? "" : node("n1")["metadata"]["uid"].get<std::string>()};
      agent::LeaseSlots leases(client, rng, own, slots);
      ToldSlots turns(leases, told);
      turns.call(called);
      out = co_await agent::release({client, rng, *machines[0], turns}, "n1", clock.now() + 1min);
    }));
    return out;
  }
  // Keys on the Node that belong to Haulout.
  std::vector<std::string> traces() const {
    std::vector<std::string> found;
    const Json metadata = node("n1")["metadata"];
    for (const char* where : {"labels", "annotations"}) {
      const Json entries = metadata.value(where, Json());
      for (const auto& [key, value] : entries.items())
        if (key.starts_with("haulout.dev/") || value == "haulout" || key == "karpenter.sh/do-not-disrupt" ||
            key == "cluster-autoscaler.kubernetes.io/scale-down-disabled")
          found.push_back(key);
    }
    const Json conditions = node("n1")["status"]["conditions"];
    for (const Json& condition : conditions)
      if (condition["type"] == "HauloutMaintenance" || condition.value("message", "").starts_with("haulout: "))
        found.emplace_back("condition");
    const Json shown = node("n1");
    for (const Json& taint : sim::at(shown, "/spec/taints"))
      if (taint.at("key") == waiting_key) found.emplace_back("taint");
    return found;
  }

  Duration delay = 1s;
  std::vector<std::string> told;  // slots, as the record named them
  std::string called;             // kind of the slots that release() uses; empty means the kind that the agent uses

 private:
  bool stopped_ = false;
};

TEST_P(Release, LeavesNoTrace) {
  const std::string state = GetParam();
  options.waiting_taint = agent::WaitingTaint{waiting_key, "yes"};
  options.lb_drain_wait = state == "draining" ? Duration(1h) : Duration(1s);
  options.times.soak = 1h;
  if (state == "pending")
    gates = [this](k8s::Client&, const std::string&) {
      return std::make_unique<ScriptedGates>(clock, [](const agent::GateQuestion&) {
        return agent::GateAnswer{{{.name = "pause-node", .verdict = agent::Gate::Verdict::closed, .reason = "Paused"}}};
      });
    };
  if (state == "waiting") {
    add(a_node("forgotten"));
    cluster.cordon("forgotten");
  }
  MachinePlan plan;
  if (state == "ready") plan.methods.clear();
  if (state == "rebooting") plan.ignored_reboots = 9;
  if (state == "degraded") plan.rolls_back = true;
  if (state == "idle") plan.target = "";
  machine("n1", plan);
  add(a_workload("Deployment", "web", 1, {{"terminationGracePeriodSeconds", 5}}));
  if (state == "verifying") annotate("hook.haulout.dev/after-boot.rook", "limit=1h");
  stop_in(state);
  run_for(10min);
  ASSERT_EQ(this->state("n1"), state) << story();
  const bool waits = state != "idle" && state != "soaking" && state != "degraded";
  EXPECT_EQ(std::ranges::count(traces(), "taint"), waits ? 1 : 0) << story();

  const agent::Released released = release();
  EXPECT_THAT(released.failures, IsEmpty());
  EXPECT_THAT(released.done, Contains(HasSubstr("labels and annotations")));
  EXPECT_EQ(std::ranges::count(released.done, "the taint of a node that waits was removed"), waits ? 1 : 0);
  EXPECT_THAT(traces(), IsEmpty());
  EXPECT_FALSE(unschedulable("n1"));
  EXPECT_EQ(slots_held(), 0u);
  EXPECT_FALSE(machines[0]->shows_ready());

  const agent::Released again = release();
  EXPECT_THAT(again.failures, IsEmpty());
  EXPECT_THAT(again.done, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(InEachState, Release,
                         ::testing::Values("idle", "pending", "waiting", "draining", "ready", "rebooting", "verifying",
                                           "soaking", "degraded"),
                         [](const auto& row) { return std::string(row.param); });

using ReleaseBy = Release;

// A person has removed the taint, so only its mark is left.
TEST_F(ReleaseBy, AMarkWithoutItsTaintIsSaidToBeOne) {
  options.waiting_taint = agent::WaitingTaint{waiting_key, "yes"};
  machine("n1", {.methods = {}});
  stop_in("ready");
  run_for(10min);
  ASSERT_THAT(traces(), Contains("taint")) << story();
  checks.by_a_person([&] { cluster.patch("nodes", "", "n1", {{"spec", {{"taints", nullptr}}}}); });
  const agent::Released released = release();
  EXPECT_THAT(released.failures, IsEmpty());
  EXPECT_THAT(released.done,
              Contains("the annotation haulout.dev/waiting-taint was removed; the taint that it named was gone"));
  EXPECT_THAT(released.done, ::testing::Not(Contains(HasSubstr("taint of a node that waits"))));
  EXPECT_THAT(traces(), IsEmpty());
}

// --release tells a person that an installation may still run, but only if it has begun.
TEST_F(ReleaseBy, AnInstallationIsNamedOnlyIfItHasBegun) {
  MachinePlan plan{.target = ""};
  plan.updates = {.on = true, .waiting = {"vim 1 to 2"}, .blocked_by = "dpkg holds the lock"};
  machine("n1", plan);
  stop_in("updating");
  run_for(10min);
  ASSERT_EQ(state("n1"), "updating") << story();
  const agent::Released released = release();
  EXPECT_THAT(released.failures, IsEmpty());
  EXPECT_THAT(released.done, ::testing::Each(::testing::Not(HasSubstr("the installation may still run"))));
}

TEST_F(ReleaseBy, AnInstallationThatHasBegunIsNamed) {
  MachinePlan plan{.target = ""};
  plan.updates = {.on = true, .waiting = {"vim 1 to 2"}, .takes = 30min};
  machine("n1", plan);
  delay = 1min;
  stop_in("updating");
  run_for(10min);
  ASSERT_EQ(state("n1"), "updating") << story();
  EXPECT_THAT(release().done, Contains(HasSubstr("the installation may still run")));
}

// P5: --release takes back only what an agent has written.
TEST_F(ReleaseBy, APersonsCordonAndWishesStay) {
  machine("n1", {.methods = {}});
  cluster.cordon("n1");
  annotate("haulout.dev/pause", "; audit");
  annotate("hook.haulout.dev/after-boot.rook", "");
  stop_in("ready");
  run_for(5min);
  ASSERT_EQ(state("n1"), "ready") << story();
  const agent::Released released = release();
  EXPECT_THAT(released.done, Contains(HasSubstr("because the agent did not cordon it")));
  EXPECT_TRUE(unschedulable("n1"));
  EXPECT_THAT(traces(), ::testing::ElementsAre("haulout.dev/pause"));
  EXPECT_EQ(slots_held(), 0u);
}

TEST_F(ReleaseBy, ARecordThatNobodyCanReadIsNoObstacle) {
  machine("n1", {.methods = {}});
  stop_in("ready");
  run_for(5min);
  annotate("haulout.dev/record", "{");
  EXPECT_THAT(release().failures, IsEmpty());
  EXPECT_THAT(traces(), ::testing::ElementsAre("haulout.dev/pool")) << "whose it is, the record cannot tell";
  EXPECT_FALSE(unschedulable("n1"));
  EXPECT_EQ(slots_held(), 0u);
}

// A lock server that knows slots only by their names must get back the slot that was taken.
TEST_F(ReleaseBy, WhoeverComesAfterIsToldWhichTurnItIs) {
  decorate_slots = [this](agent::Slots& inner) { return std::make_unique<ToldSlots>(inner, told); };
  Machine& n1 = machine("n1", {.methods = {}});
  after(5min, [&] { n1.kill_agent(); });
  after(10min, [&] { n1.power_cycle(); });
  after(20min, [&] { n1.kill_agent(); });
  run_for(25min);
  expect_updated(n1);
  const std::string slot = "lease/haulout/haulout-default-0";
  EXPECT_THAT(told, ::testing::ElementsAre("", slot, slot, "")) << "given back in the end\n" << story();
}

TEST_F(ReleaseBy, APersonGivesTheTurnOfTheRecordBack) {
  machine("n1", {.methods = {}});
  stop_in("ready");
  run_for(5min);
  EXPECT_THAT(release().failures, IsEmpty());
  EXPECT_THAT(told, ::testing::ElementsAre("lease/haulout/haulout-default-0"));
}

// --release runs with another kind of slots (--slots) than the agent's. It finds no slot to free. If it removed the
// record, nothing would name the slot any more.
TEST_F(ReleaseBy, SlotsOfAnotherKindLeaveRecordAndTurn) {
  machine("n1", {.methods = {}});
  stop_in("ready");
  run_for(5min);
  called = "fleetlock";
  EXPECT_THAT(release().failures,
              ::testing::ElementsAre(
                  "slot lease/haulout/haulout-default-0 is not released, because it was taken with --slots=lease: run "
                  "haulout agent --release again with that value instead of --slots=fleetlock"));
  EXPECT_EQ(slots_held(), 1u);
  EXPECT_THAT(traces(), Contains("haulout.dev/record"));
  EXPECT_FALSE(unschedulable("n1"));
  called.clear();
  EXPECT_THAT(release().failures, IsEmpty());
  EXPECT_THAT(traces(), IsEmpty());
  EXPECT_EQ(slots_held(), 0u);
}

// If --release fails, its next run must find what is left. It never frees a slot while the node is still cordoned.
TEST_F(ReleaseBy, AnApiServerThatIsAwayLeavesRecordAndTurn) {
  machine("n1", {.methods = {}});
  stop_in("ready");
  run_for(5min);
  cluster.restart(1h);
  EXPECT_THAT(release().failures, ::testing::Not(IsEmpty()));
  run_for(2h);
  EXPECT_EQ(slots_held(), 1u);
  EXPECT_EQ(state("n1"), "ready");
  EXPECT_THAT(release().failures, IsEmpty());
  EXPECT_THAT(traces(), IsEmpty());
  EXPECT_EQ(slots_held(), 0u);
}

// An admission policy refuses every change of the annotations for autoscalers. Everything else is given back.
TEST_F(ReleaseBy, AnnotationsForAutoscalersThatMustStayHinderNothingElse) {
  machine("n1", {.methods = {}});
  stop_in("ready");
  run_for(5min);
  bool refuses = true;
  cluster.server().intercept(
      [&refuses](const sim::Call& call, const sim::AuditEntry&) -> std::optional<http::Response> {
        if (!refuses || call.request.body.find("scale-down-disabled") == std::string::npos) return std::nullopt;
        sim::StatusBody denied;
        denied.code = 422;
        denied.message = "policy no-autoscalers denied it";
        return denied.response();
      });
  EXPECT_THAT(release().failures, ::testing::ElementsAre(::testing::AllOf(
                                      HasSubstr("the annotations for autoscalers stay"), HasSubstr("no-autoscalers"))));
  EXPECT_FALSE(unschedulable("n1"));
  EXPECT_EQ(slots_held(), 0u);
  EXPECT_THAT(traces(), ::testing::UnorderedElementsAre("haulout.dev/held-autoscalers", "karpenter.sh/do-not-disrupt",
                                                        "cluster-autoscaler.kubernetes.io/scale-down-disabled"));
  refuses = false;
  EXPECT_THAT(release().failures, IsEmpty());
  EXPECT_THAT(traces(), IsEmpty());
}

TEST_F(ReleaseBy, ANodeThatIsGoneIsSaidToBe) {
  machine("n1", {.target = ""});
  stop_in("idle");
  run_for(1min);
  cluster.remove("nodes", "", "n1");
  const agent::Released released = release();
  EXPECT_THAT(released.failures, IsEmpty());
  EXPECT_THAT(released.done, ::testing::ElementsAre(HasSubstr("does not exist")));
}

// An agent is killed while a responder works on a pod, behind a budget that never opens. The next one must not forget
// the request before it knows that none is left.
class ReleaseOfRequests : public Release {
 protected:
  ReleaseOfRequests() {
    cluster.switches().eviction_requests = true;
    checks.asks = true;
    options.drain.eviction_requests = drain::EvictionRequests::responders;
    options.drain.timeout = 5min;
  }
  // Kills the first agent while it drains, and the second one after its drain has ended. `between` comes between them.
  void run_twice(const std::function<void()>& between) {
    machine("n1");
    PodSpec vm;
    vm.labels = {{"app", "vm"}};
    vm.spec["evictionResponders"] = Json::array({{{"name", "acme.io/mover"}, {"priority", 10000}}});
    vm.annotations["sim.haulout.dev/responders"] = "works";
    add(a_pod("vm", vm));
    add(a_budget("vm", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "vm"}}}}}}));
    after(3min, [this, between] {
      EXPECT_EQ(state("n1"), "draining");
      EXPECT_THAT(intents(), ::testing::ElementsAre("Eviction"));
      between();
      machines[0]->kill_agent();
    });
    after(12min, [this] {
      EXPECT_NE(state("n1"), "draining");
      machines[0]->plan().agent_starts = 1000h;
      machines[0]->kill_agent();
    });
    run_for(13min);
  }
  std::vector<std::string> intents() const {
    std::vector<std::string> intents;
    for (const Json& request : cluster.all("evictionrequests")) intents.push_back(sim::text(request, "/spec/intent"));
    return intents;
  }
};

TEST_F(ReleaseOfRequests, AnAgentWithoutTheOptionWithdrawsThoseOfAnEarlierOne) {
  run_twice([this] { machines[0]->options().drain.eviction_requests = drain::EvictionRequests::off; });
  EXPECT_THAT(intents(), ::testing::ElementsAre("Withdrawn")) << story();
}

TEST_F(ReleaseOfRequests, WhatNoAgentCouldListIsWithdrawnInTheEnd) {
  run_twice([this] { cluster.switches().forbidden.insert("list evictionrequests"); });
  EXPECT_THAT(intents(), ::testing::ElementsAre("Eviction")) << story();
  cluster.switches().forbidden.clear();
  const agent::Released released = release();
  EXPECT_THAT(released.failures, IsEmpty());
  EXPECT_THAT(released.done, Contains("the EvictionRequest for pod shop/vm was withdrawn"));
  EXPECT_THAT(intents(), ::testing::ElementsAre("Withdrawn"));
}

}  // namespace
}  // namespace haulout::fleet
