// Tests an agent, logind on a private bus, and a person who types `reboot`, with real sockets and the real clock.
#include "agent/dbus/logind.hpp"
#include "agent/lifecycle/agent.hpp"
#include "agent/slots/none_slots.hpp"
#include "tests/agent/dbus/bus_fixture.hpp"
#include "tests/fleet/scripted_gates.hpp"
#include "tests/scenario/scenario.hpp"
#include "tests/support/test_cluster.hpp"

namespace haulout::testing {
namespace {

using ::testing::ElementsAre;

constexpr const char* asked = "Inhibit(shutdown,haulout,delay)";

// A machine that needs no reboot.
struct QuietMachine final : agent::Host, agent::Backend {
  explicit QuietMachine(Clock& clock) : clock(clock) {}
  std::string name() const override { return "quiet"; }
  awaitable<agent::Pending> pending(TimePoint) override { co_return agent::Pending{.need = agent::Need::no}; }
  Task<std::string> booted(TimePoint) override { co_return std::string("1"); }
  Task<> apply(std::string, TimePoint) override { co_return Result<>(); }
  awaitable<void> changed() override { co_await clock.sleep_until(TimePoint::max()); }
  Result<std::string> boot_id() override { return std::string("boot-1"); }
  Task<agent::MachineStart> started(TimePoint) override { co_return agent::MachineStart{}; }
  std::vector<std::string> reboot_methods() const override { return {}; }
  Task<> can_reboot(TimePoint) override { co_return Result<>(); }
  Task<std::string> blocked_by(TimePoint) override { co_return std::string(); }
  Task<> reboot(std::size_t, TimePoint) override { co_return Result<>(); }
  Task<bool> boot_complete(TimePoint) override { co_return true; }
  Result<> show_ready(bool) override { return {}; }
  Clock& clock;
};

class HumanReboot : public LiveBusTest {
 protected:
  // The node has one pod with this specification.
  void run_agent(const scenario::PodSpec& spec, std::function<awaitable<void>()> body) {
    login1.connect(daemon.address());
    ASSERT_TRUE(cluster.load(scenario::a_node("n1").dump()));
    ASSERT_TRUE(cluster.load(scenario::a_pod("web-0", spec).dump()));
    cluster.on_change([this](const sim::Change&) { event.notify(); });
    run({&login1}, [&](TaskGroup& group) {
      group.spawn(cluster.run());
      group.spawn(inhibitor.run());
      group.spawn(agent.run());
      return body();
    });
  }
  bool unschedulable() const { return sim::flag(cluster.get("nodes", "", "n1"), "/spec/unschedulable"); }
  std::string label(const char* key) const {
    const sim::Json node = cluster.get("nodes", "", "n1");
    const sim::Json& labels = sim::at(node, "/metadata/labels");
    return labels.is_object() ? labels.value(key, "") : "";
  }
  std::string reason() const { return label("haulout.dev/reason"); }
  std::string state() const { return label("haulout.dev/state"); }

  SeededRng world_rng{2};
  sim::TestCluster cluster{context.get_executor(), clock, world_rng};
  k8s::Client client{cluster.api(), clock};
  QuietMachine machine{clock};
  agent::NoneSlots slots{clock};
  fleet::ScriptedGates gates{clock, [](const agent::GateQuestion&) { return agent::GateAnswer{}; }};
  scenario::Recorder drains;
  agent::ShutdownInhibitor inhibitor{bus, rng};
  agent::Agent agent{{.client = client,
                      .rng = rng,
                      .host = machine,
                      .backend = machine,
                      .slots = slots,
                      .gates = gates,
                      .drain_observer = drains,
                      .tell = [](const agent::Status&) {},
                      .shutdown = &inhibitor},
                     [] {
                       agent::AgentOptions options;
                       options.node = "n1";
                       options.drain.review_access = false;
                       return options;
                     }()};
};

TEST_F(HumanReboot, WaitsUntilThePodsHaveLeft) {
  run_agent({.grace = 0}, [&]() -> awaitable<void> {
    co_await until([&] { return state() == "idle" && login1.locks == 1; });
    login1.prepare(true);
    co_await until([&] { return login1.locks == 0; });
    EXPECT_TRUE(unschedulable());
    EXPECT_EQ(reason(), "ShutdownDrained");
    EXPECT_TRUE(cluster.all("pods").empty());
    login1.prepare(false);
    co_await until([&] { return !unschedulable() && login1.locks == 1; });
  });
  EXPECT_THAT(login1.calls, ElementsAre(asked, "released", asked));
}

// The pod never terminates, so the drain cannot end. The agent still releases the lock when logind's delay is over, and
// uncordons the node after the shutdown was called off.
TEST_F(HumanReboot, IsNotHeldUpLongerThanLogindSays) {
  login1.delay_max_usec = 1'000'000;
  run_agent({.annotations = {{"sim.haulout.dev/never-terminates", "true"}}}, [&]() -> awaitable<void> {
    co_await until([&] { return state() == "idle" && login1.locks == 1; });
    login1.prepare(true);
    co_await until([&] { return login1.locks == 0; });
    EXPECT_TRUE(unschedulable());
    EXPECT_EQ(cluster.all("pods").size(), 1u);
    login1.prepare(false);
    co_await until([&] { return login1.locks == 1; });
    co_await until([&] { return !unschedulable(); });
  });
}

}  // namespace
}  // namespace haulout::testing
