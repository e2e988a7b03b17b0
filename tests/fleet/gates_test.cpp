// Gates on a fleet: what holds a node back, and what gives up a drain under way.
#include "tests/fleet/fleet.hpp"
#include "tests/fleet/scripted_gates.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using agent::Gate;
using agent::GateAnswer;
using agent::GateQuestion;

struct Gates : Fleet {
  void script(ScriptedGates::Answer answer) {
    gates = [this, answer](k8s::Client&, const std::string&) { return std::make_unique<ScriptedGates>(clock, answer); };
  }
  static GateAnswer closed(Gate::Effect effect = Gate::Effect::waits) {
    return {{{.name = "pause-node",
              .verdict = Gate::Verdict::closed,
              .reason = "Paused",
              .message = "paused",
              .effect = effect}}};
  }
};

TEST_F(Gates, AClosedGateHoldsAndReleases) {
  bool open = false;
  script([&](const GateQuestion&) { return open ? GateAnswer{} : closed(); });
  Machine& n1 = machine("n1");
  after(30min, [&] {
    EXPECT_EQ(state("n1"), "pending");
    EXPECT_EQ(label("n1", "haulout.dev/reason"), "Paused");
    EXPECT_EQ(slots_held(), 0u);
    open = true;
  });
  run_fleet();
  expect_updated(n1);
}

}  // namespace
}  // namespace haulout::fleet
