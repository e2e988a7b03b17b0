// The taint by which agents ask the scheduler to prefer other nodes while their node waits for its update. Nothing of
// the update depends on it.
#include "tests/fleet/fleet.hpp"

namespace haulout::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr const char* key = "example.com/waits";
constexpr const char* mark_key = "haulout.dev/waiting-taint";

struct Waiting : Fleet {
  Waiting() { options.waiting_taint = agent::WaitingTaint{key, "yes"}; }

  bool tainted(const std::string& name = "n1") const {
    const Json shown = node(name);
    for (const Json& taint : sim::at(shown, "/spec/taints"))
      if (taint.at("key") == key) return true;
    return false;
  }
  std::string mark(const std::string& name = "n1") const { return sim::annotation(node(name), mark_key); }
  // A person removes the taint of this key from n1, and sets `taint` instead, unless it is null.
  void a_person_sets(const Json& taint) {
    Json taints = sim::at(node("n1"), "/spec/taints");
    if (!taints.is_array()) taints = Json::array();
    std::erase_if(taints.get_ref<Json::array_t&>(), [](const Json& each) { return each.at("key") == key; });
    if (!taint.is_null()) taints.push_back(taint);
    checks.by_a_person([&] { cluster.patch("nodes", "", "n1", {{"spec", {{"taints", taints}}}}); });
  }
  void web() { add(a_workload("Deployment", "web", 2, {{"terminationGracePeriodSeconds", 5}})); }
  // An admission policy or NodeRestriction denies every change of taints by agents.
  void deny(int code, bool* denies = nullptr) {
    cluster.server().intercept(
        [code, denies](const sim::Call& call, const sim::AuditEntry&) -> std::optional<http::Response> {
          if ((denies && !*denies) || call.request.body.find("\"taints\"") == std::string::npos) return std::nullopt;
          sim::StatusBody denied;
          denied.code = code;
          denied.message = "policy no-taints denied it";
          return denied.response();
        });
  }
  std::size_t warnings() const {
    return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("warns: WaitingTaintFailed") != line.npos;
    }));
  }
  void expect_nothing_left(const std::string& name = "n1") const {
    EXPECT_FALSE(tainted(name)) << story();
    EXPECT_EQ(mark(name), "") << story();
  }
  // The states in which n1 has had the taint, in order.
  void note_states(std::vector<std::string>& with, std::vector<std::string>& without) {
    cluster.on_change([this, &with, &without](const sim::Change& change) {
      if (change.key.name != "n1") return;
      std::vector<std::string>& seen = tainted() ? with : without;
      if (seen.empty() || seen.back() != state("n1")) seen.push_back(state("n1"));
    });
  }
};

TEST_F(Waiting, ANodeHasTheTaintFromTheNeedUntilItIsUncordoned) {
  options.times.soak = 10min;
  std::vector<std::string> with, without;
  machine("n1");
  machine("n2", {.target = ""});
  web();
  note_states(with, without);
  bool marked = true, of_n2 = false, cordoned_without = false;
  cluster.on_change([&](const sim::Change&) {
    marked = marked && tainted() == !mark().empty();
    of_n2 = of_n2 || tainted("n2");
    cordoned_without = cordoned_without || (unschedulable("n1") && !tainted());
  });
  run_fleet();
  expect_updated(*machines[0]);
  EXPECT_THAT(with, ::testing::IsSupersetOf({"pending", "draining", "ready", "rebooting", "verifying"})) << story();
  EXPECT_THAT(with, ::testing::Not(::testing::Contains("soaking")));
  EXPECT_TRUE(marked) << "taint and mark come and go together";
  EXPECT_FALSE(of_n2) << "it needs no update";
  EXPECT_FALSE(cordoned_without) << story();
  expect_nothing_left();
  EXPECT_EQ(warnings(), 0u);
}

// The turn is taken, and the node waits for hours. The taint is there all the time.
TEST_F(Waiting, ANodeThatWaitsForItsSlotHasTheTaint) {
  machine("n1", {.methods = {}});
  machine("n2");
  after(2h, [&] {
    EXPECT_TRUE(tainted("n1")) << story();
    EXPECT_EQ(state("n2"), "waiting") << story();
    EXPECT_TRUE(tainted("n2"));
    machines[0]->power_cycle();
  });
  run_fleet();
  expect_nothing_left("n1");
  expect_nothing_left("n2");
}

TEST_F(Waiting, ANeedThatIsGoneEndsTheTaint) {
  cordon("n1");
  Machine& n1 = machine("n1", {.methods = {}});
  after(5min, [&] {
    EXPECT_TRUE(tainted()) << story();
    n1.want("");
  });
  run_fleet();
  EXPECT_EQ(state("n1"), "idle") << story();
  expect_nothing_left();
}

TEST_F(Waiting, WithoutTheOptionThereIsNoTaint) {
  options.waiting_taint.reset();
  machine("n1");
  bool seen = false;
  cluster.on_change([&](const sim::Change&) { seen = seen || tainted() || !mark().empty(); });
  run_fleet();
  expect_updated(*machines[0]);
  EXPECT_FALSE(seen);
}

// P7: an earlier agent has set the taint, and the option was switched off since.
TEST_F(Waiting, P7_AnAgentWithoutTheOptionTakesItsTaintBack) {
  options.waiting_taint.reset();
  machine("n1", {.methods = {}});
  checks.by_a_person([&] {
    cluster.patch(
        "nodes", "", "n1",
        {{"metadata", {{"annotations", {{mark_key, "example.com/waits=yes:PreferNoSchedule@2026-01-01T00:00:00Z"}}}}},
         {"spec",
          {{"taints", Json::array({{{"key", "example.com/other"}, {"effect", "NoSchedule"}, {"value", "x"}},
                                   {{"key", key},
                                    {"value", "yes"},
                                    {"effect", "PreferNoSchedule"},
                                    {"timeAdded", "2026-01-01T00:00:00Z"}}})}}}});
  });
  run_for(3min);
  expect_nothing_left();
  EXPECT_EQ(node("n1")["spec"]["taints"][0]["value"], "x") << node("n1").dump();
}

// A refusal never stops an update, and the agent warns once.
struct WaitingDenied : Waiting, ::testing::WithParamInterface<int> {};

TEST_P(WaitingDenied, StopsNoUpdate) {
  deny(GetParam());
  machine("n1");
  web();
  run_fleet(15min);
  expect_updated(*machines[0]);
  EXPECT_EQ(warnings(), 1u) << story();
  EXPECT_THAT(story(), HasSubstr("the taint example.com/waits=yes:PreferNoSchedule of node n1 cannot be written yet, "
                                 "and the agent continues without it: "));
  EXPECT_THAT(story(), HasSubstr("no-taints"));
  expect_nothing_left();
}

INSTANTIATE_TEST_SUITE_P(Codes, WaitingDenied, ::testing::Values(400, 403, 409, 422, 500, 503),
                         [](const auto& row) { return std::to_string(row.param); });

// The refusal comes in the middle of the update. The taint is removed when that is permitted again.
TEST_F(Waiting, WhatCannotBeRemovedIsRemovedLater) {
  bool denies = false;
  deny(403, &denies);
  Machine& n1 = machine("n1");
  after(30s, [&] {
    EXPECT_TRUE(tainted()) << story();
    denies = true;
  });
  after(40min, [&] {
    expect_updated(n1);
    EXPECT_EQ(slots_held(), 0u);
    EXPECT_TRUE(tainted());
    EXPECT_EQ(warnings(), 1u) << story();
    denies = false;
  });
  run_for(55min);
  expect_nothing_left();
}

// P5: what a person removes stays removed until the next update, and what a person sets then is the person's.
TEST_F(Waiting, P5_WhatAPersonRemovesAndSetsAgainIsThePersons) {
  machine("n1", {.methods = {}});
  after(5min, [&] {
    EXPECT_TRUE(tainted()) << story();
    a_person_sets(nullptr);
  });
  after(10min, [&] {
    EXPECT_FALSE(tainted()) << story();
    EXPECT_EQ(mark(), "none");
    a_person_sets({{"key", key}, {"value", "yes"}, {"effect", "PreferNoSchedule"}});
  });
  after(20min, [&] { machines[0]->power_cycle(); });
  run_fleet();
  expect_updated(*machines[0]);
  EXPECT_TRUE(tainted());
  EXPECT_EQ(mark(), "");
}

// Another client restores the Node without the taint and its mark each time. As nothing of the taint is left, the agent
// cannot tell that from a Node without one, and must not write all the time.
TEST_F(Waiting, AClientThatUndoesItIsNotFoughtWithManyWrites) {
  machine("n1", {.methods = {}});
  std::size_t added = 0;
  bool is_undone = false;
  cluster.on_change([&](const sim::Change& change) {
    if (change.key.name != "n1" || !tainted() || is_undone) return;
    ++added;
    is_undone = true;
    cluster.at(clock.now() + 1s, [&] {
      a_person_sets(nullptr);
      checks.by_a_person(
          [&] { cluster.patch("nodes", "", "n1", {{"metadata", {{"annotations", {{mark_key, nullptr}}}}}}); });
      is_undone = false;
    });
  });
  run_for(6h);
  EXPECT_GT(added, 10u) << "it does not give up either";
  EXPECT_LT(added, 100u) << story();
}

// P5: a person's taint of the same key and effect is there from the beginning.
TEST_F(Waiting, P5_ThePersonsTaintStays) {
  machine("n1");
  cluster.taint("n1", key, "PreferNoSchedule");
  bool marked = false;
  cluster.on_change([&](const sim::Change&) { marked = marked || !mark().empty(); });
  run_fleet();
  expect_updated(*machines[0]);
  EXPECT_TRUE(tainted());
  EXPECT_FALSE(marked);
}

// A degraded node does not wait for an update any more, but for a person.
TEST_F(Waiting, ADegradedNodeHasNoTaint) {
  machine("n1", {.rolls_back = true});
  run_for(1h);
  EXPECT_EQ(state("n1"), "degraded") << story();
  expect_nothing_left();
}

}  // namespace
}  // namespace haulout::fleet
