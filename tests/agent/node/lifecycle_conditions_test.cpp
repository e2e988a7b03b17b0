// The conditions of KEP-5683: when they are True, whose they are, and the patches that keep them so.
#include "agent/node/lifecycle_conditions.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "drain/cordon.hpp"
#include "drain/reasons.hpp"

namespace haulout::agent {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using ::testing::HasSubstr;

constexpr WallTime now{std::chrono::hours(1000)};

// How the node of a run is cordoned.
enum class Cordon {
  not_yet,      // the run has not cordoned the node
  ours,         // the run has cordoned it
  ours_unread,  // the same, and the record does not say so yet
  persons,      // a person has cordoned it, and the run has not begun to drain
  shared,       // a person has cordoned it, and the run works under this cordon
  lost,         // the run had cordoned it, and another client has made it schedulable
};
constexpr std::array all_cordons{Cordon::not_yet, Cordon::ours,   Cordon::ours_unread,
                                 Cordon::persons, Cordon::shared, Cordon::lost};

struct World {
  World() {
    node.name = "n1";
    node.resource_version = "42";
    node.boot_id = record.boot_id = boot_id;
    node.ready = true;
    record.run = "run-1";
    status.reason = "SomeReason";
    status.message = "because of this";
  }
  World(State state, Cordon cordon) : World() {
    record.state = status.state = state;
    record.cordoned = cordon == Cordon::ours || cordon == Cordon::shared || cordon == Cordon::lost;
    node.unschedulable = cordon != Cordon::not_yet && cordon != Cordon::lost;
    if (cordon == Cordon::ours || cordon == Cordon::ours_unread || cordon == Cordon::lost)
      node.annotations["haulout.dev/cordon"] = drain::encode_mark({"run-1", "agent", now});
  }
  std::vector<ToldCondition> told() const {
    return told_conditions({.node = node,
                            .record = record,
                            .status = status,
                            .boot_id = boot_id,
                            .needed = needed,
                            .proved = proved,
                            .gates_asked = gates_asked,
                            .not_before = not_before});
  }
  // The types, abbreviated: P(lanned), D(rain), E(mpty), M(aintenance).
  std::string types() const {
    std::string all;
    for (const ToldCondition& each : told())
      all += each.type == "MaintenancePlanned"      ? "P"
             : each.type == "DrainInProgress"       ? "D"
             : each.type == "Drained"               ? "E"
             : each.type == "MaintenanceInProgress" ? "M"
                                                    : "?";
    return all;
  }
  const ToldCondition& only(const std::vector<ToldCondition>& all, std::string_view type) const {
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.type == type; });
    EXPECT_NE(found, all.end()) << type;
    return *found;
  }
  // The patch, or null if nothing has to be written. A removed condition is {"type": …, "gone": true}.
  Json patch(bool beat = false) const {
    const auto text = conditions_patch(node, told(), now, beat);
    if (!text) return nullptr;
    Json json = Json::parse(*text);
    EXPECT_EQ(json["metadata"], (Json{{"resourceVersion", "42"}})) << "guarded, and nothing but the status";
    EXPECT_EQ(json["status"].size(), 1u);
    return json["status"]["conditions"];
  }
  // The types that the patch changes: "+Drained -DrainInProgress".
  std::string changes(bool beat = false) const {
    std::string all;
    for (const Json& each : patch(beat))
      all +=
          (all.empty() ? "" : " ") + std::string(each.contains("$patch") ? "-" : "+") + each["type"].get<std::string>();
    return all;
  }
  void show() {
    for (const ToldCondition& each : told()) node.conditions.push_back(shown(each));
  }
  static k8s::NodeCondition shown(const ToldCondition& told) {
    return {std::string(told.type), "True", told.reason, now, told.message};
  }

  std::string boot_id = "b1";
  k8s::Node node;
  Record record;
  Status status;
  bool needed = true, proved = true, gates_asked = true;
  std::optional<WallTime> not_before;
};

TEST(LifecycleConditions, EachStateUnderEachCordon) {
  const struct {
    State state;
    std::array<const char*, 6> types;  // in the order of all_cordons
  } table[] = {
      // not_yet, ours, ours_unread, persons, shared, lost
      {State::unknown, {"", "M", "M", "", "M", ""}},       {State::idle, {"", "M", "M", "", "M", ""}},
      {State::pending, {"P", "M", "M", "P", "M", "P"}},    {State::waiting, {"P", "M", "M", "P", "M", "P"}},
      {State::draining, {"P", "DM", "DM", "P", "DM", ""}}, {State::updating, {"M", "M", "M", "M", "M", "M"}},
      {State::ready, {"", "EM", "EM", "E", "EM", ""}},     {State::rebooting, {"M", "EM", "EM", "EM", "EM", "M"}},
      {State::verifying, {"", "M", "M", "", "M", ""}},     {State::uncordoning, {"", "M", "M", "", "M", ""}},
      {State::soaking, {"", "M", "M", "", "M", ""}},       {State::degraded, {"", "M", "M", "", "M", ""}},
  };
  static_assert(std::size(table) == all_states.size());
  for (const auto& row : table)
    for (std::size_t i = 0; i < all_cordons.size(); ++i) {
      SCOPED_TRACE(std::string(to_string(row.state)) + ", cordon " + std::to_string(i));
      World world(row.state, all_cordons[i]);
      EXPECT_EQ(world.types(), row.types[i]);

      const auto without = [&](char type) {
        std::string rest = row.types[i];
        std::erase(rest, type);
        return rest;
      };
      world.proved = false;
      EXPECT_EQ(world.types(), without('E')) << "nothing is proved";
      world.proved = true;
      world.boot_id = "b2";
      EXPECT_EQ(world.types(), without('E')) << "the machine has booted";
      world.boot_id = "b1";
      world.node.boot_id = "b2";
      EXPECT_EQ(world.types(), without('E')) << "the kubelet reports another boot";
      world.node.boot_id = "b1";
      world.needed = false;
      EXPECT_EQ(world.types(), without('P')) << "nothing is needed any more";
      world.needed = true;
      world.status.reason.clear();
      EXPECT_EQ(world.types(), without('P')) << "the node does not wait yet";
      world.status.reason = "SomeReason";
      // Without a run only the waiting states have something to tell, and a proof under a cordon.
      world.record.run.clear();
      world.record.cordoned = false;
      const bool waits = row.state == State::pending || row.state == State::waiting || row.state == State::draining;
      const bool empty = (row.state == State::ready || row.state == State::rebooting) && world.node.unschedulable;
      EXPECT_EQ(world.types(), waits ? "P" : empty ? "E" : "") << "no run";

      World unread(row.state, all_cordons[i]);
      unread.record = decode_record("{");
      const bool ours = all_cordons[i] == Cordon::ours || all_cordons[i] == Cordon::ours_unread;
      EXPECT_EQ(unread.types(), ours ? "M" : "") << "the record cannot be read";
    }
}

// `haulout cordon` writes a mark, too.
TEST(LifecycleConditions, APersonsMarkIsNoCordonOfTheAgent) {
  World world(State::degraded, Cordon::persons);
  world.node.annotations["haulout.dev/cordon"] = drain::encode_mark({"run-2", "jane@laptop", now});
  EXPECT_EQ(world.types(), "");
  world.record = decode_record("{");
  EXPECT_EQ(world.types(), "");
}

TEST(LifecycleConditions, ReasonAndMessageAreThoseOfTheNode) {
  const World draining(State::draining, Cordon::ours);
  for (const ToldCondition& each : draining.told()) {
    EXPECT_EQ(each.reason, "SomeReason");
    EXPECT_EQ(each.message, "haulout: because of this");
  }
  World ready(State::ready, Cordon::ours);
  ready.status.reason = ready.status.message = "";
  const auto told = ready.told();
  EXPECT_EQ(ready.only(told, "MaintenanceInProgress").reason, "Ready") << "the API requires a reason";
  EXPECT_EQ(ready.only(told, "Drained").reason, "DrainCompleted") << "why a node waits is no reason for its emptiness";
  for (const ToldCondition& each : told) EXPECT_THAT(each.message, ::testing::StartsWith("haulout: "));
}

TEST(LifecycleConditions, ATimeIsToldOnlyIfItIsKnown) {
  World world(State::pending, Cordon::not_yet);
  EXPECT_EQ(world.told()[0].message, "haulout: because of this");
  world.not_before = WallTime(std::chrono::hours(24 * 365));
  EXPECT_EQ(world.told()[0].message, "haulout: not before 1971-01-01T00:00:00Z: because of this");
}

// Nothing else of a message is worth a write: a drain has another one every few seconds.
TEST(LifecycleConditions, ANewTimeIsWrittenAndOtherNewWordsAreNot) {
  World world(State::pending, Cordon::not_yet);
  world.show();
  EXPECT_EQ(world.patch(), nullptr);
  world.status.message = "2 of 5 pods";
  EXPECT_EQ(world.patch(), nullptr);
  world.not_before = now + 1h;
  EXPECT_EQ(world.changes(), "+MaintenancePlanned");
  world.node.conditions.clear();
  world.show();
  EXPECT_EQ(world.patch(), nullptr);
  world.status.message = "not before noon, and other words";
  EXPECT_EQ(world.patch(), nullptr);
  world.not_before = now + 2h;
  EXPECT_EQ(world.changes(), "+MaintenancePlanned");
  world.not_before.reset();
  EXPECT_EQ(world.changes(), "+MaintenancePlanned");
  world.status.reason = "Paused";
  EXPECT_EQ(world.changes(), "+MaintenancePlanned");
}

// Between two reasons, for example when the gates have opened and the slot is not yet asked for, there is no gap.
TEST(LifecycleConditions, APlanThatIsToldStaysUntilTheCordon) {
  World world(State::pending, Cordon::not_yet);
  world.show();
  world.status.reason = world.status.message = "";
  for (const State state : {State::waiting, State::draining}) {
    world.record.state = state;
    EXPECT_EQ(world.types(), "P");
    EXPECT_EQ(world.patch(), nullptr);
  }
  world.status.reason = reason::evicting;
  EXPECT_EQ(world.patch(), nullptr) << "it begins in this moment";
  EXPECT_EQ(World(State::draining, Cordon::not_yet).types(), "P");
  World at_once(State::draining, Cordon::not_yet);
  at_once.status.reason = reason::evicting;
  EXPECT_EQ(at_once.types(), "") << "nothing was waited for, so nothing is told for a moment";
  world.node.unschedulable = world.record.cordoned = true;
  EXPECT_EQ(world.changes(), "+DrainInProgress +MaintenanceInProgress -MaintenancePlanned");
}

// An agent that was started again knows the time only when it has asked the gates.
TEST(LifecycleConditions, APlanThatIsToldStaysUntilTheGatesAreAsked) {
  World world(State::pending, Cordon::not_yet);
  world.not_before = now + 1h;
  world.show();
  world.not_before.reset();
  world.gates_asked = false;
  world.status.reason = "Paused";
  EXPECT_EQ(world.patch(), nullptr);
  world.gates_asked = true;
  EXPECT_EQ(world.changes(), "+MaintenancePlanned");
  world.node.conditions.clear();
  world.gates_asked = false;
  EXPECT_EQ(world.changes(), "+MaintenancePlanned") << "nothing was told yet";
}

TEST(LifecycleConditions, SayTheSame) {
  using All = std::vector<ToldCondition>;
  const ToldCondition plan{"MaintenancePlanned", "Paused", "haulout: not before 1971-01-01T00:00:00Z: audit"};
  const ToldCondition drain{"DrainInProgress", "Evicting", "haulout: 3 of 5 pods"};
  ToldCondition later = plan, other_words = drain, other_reason = drain;
  later.message = "haulout: not before 1972-01-01T00:00:00Z: audit";
  other_words.message = "haulout: 4 of 5 pods";
  other_reason.reason = "BlockedByBudget";
  EXPECT_TRUE(say_the_same({}, {}));
  EXPECT_TRUE(say_the_same({drain}, {other_words}));
  for (const All& other : {All{}, All{plan}, All{other_reason}, All{drain, plan}})
    EXPECT_FALSE(say_the_same({drain}, other));
  EXPECT_FALSE(say_the_same({plan}, {later}));
}

TEST(LifecycleConditions, TheWithdrawalOfDrainedChangesNothingElse) {
  World world(State::ready, Cordon::ours);
  const Json json = Json::parse(drained_withdrawal(world.node));
  EXPECT_EQ(json["metadata"], (Json{{"resourceVersion", "42"}}));
  EXPECT_EQ(json["status"]["conditions"], Json::array({Json{{"type", "Drained"}, {"$patch", "delete"}}}));
}

TEST(LifecycleConditions, ATransitionHasItsTime) {
  World world(State::draining, Cordon::ours);
  Json first = world.patch()[0];
  EXPECT_EQ(first["type"], "DrainInProgress");
  EXPECT_EQ(first["status"], "True");
  EXPECT_EQ(first["lastTransitionTime"], first["lastHeartbeatTime"]);
  EXPECT_EQ(first["lastHeartbeatTime"], "1970-02-11T16:00:00Z");
  world.show();
  world.status.reason = "BlockedByBudget";
  const Json again = world.patch()[0];
  EXPECT_EQ(again["reason"], "BlockedByBudget");
  EXPECT_FALSE(again.contains("lastTransitionTime")) << "it was True before";
}

TEST(LifecycleConditions, AHeartbeatIsWrittenWhenItIsDue) {
  World world(State::draining, Cordon::ours);
  world.show();
  for (k8s::NodeCondition& shown : world.node.conditions) shown.last_heartbeat = now - 2min;
  EXPECT_EQ(world.changes(true), "");
  for (k8s::NodeCondition& shown : world.node.conditions) shown.last_heartbeat = now - 3min;
  EXPECT_EQ(world.changes(false), "") << "other news are no heartbeat";
  EXPECT_EQ(world.changes(true), "+DrainInProgress +MaintenanceInProgress");
  World planned(State::pending, Cordon::not_yet);
  planned.show();
  planned.node.conditions[0].last_heartbeat = now - 24h;
  EXPECT_EQ(planned.changes(true), "") << "a fleet may wait for weeks";
}

TEST(LifecycleConditions, P5_WhatOthersHaveWrittenIsTheirs) {
  const struct {
    const char* what;
    k8s::NodeCondition shown;
    bool ours;
  } table[] = {
      {"ours", {"Drained", "True", "DrainCompleted", now, "haulout: no pod"}, true},
      {"ours, made false by others", {"Drained", "False", "DrainCompleted", now, "haulout: no pod"}, true},
      {"kubectl's", {"Drained", "True", "DrainCompleted", now, "drained by kubectl"}, false},
      {"without a message", {"Drained", "True", "DrainCompleted", now, ""}, false},
      {"about us", {"Drained", "True", "DrainCompleted", now, "not by haulout: by me"}, false},
      {"another type", {"NetworkReady", "True", "", now, "haulout: no pod"}, false},
      {"of an earlier agent", {"HauloutMaintenance", "False", "Idle", now, ""}, true},
  };
  for (const auto& row : table) {
    EXPECT_EQ(is_own(row.shown), row.ours) << row.what;
    World world(State::idle, Cordon::not_yet);
    world.node.conditions = {{"Ready", "True"}, row.shown};
    EXPECT_EQ(world.changes(), row.ours ? "-" + row.shown.type : "") << row.what;
    EXPECT_EQ(must_withdraw_drained(world.node, world.told()), row.ours && row.shown.type == "Drained") << row.what;
  }
}

TEST(LifecycleConditions, P5_AConditionOfOthersStaysUnlessItIsFalse) {
  const auto with = [](std::string status) {
    World world(State::ready, Cordon::ours);
    world.show();
    for (k8s::NodeCondition& shown : world.node.conditions)
      if (shown.type == "Drained") shown = {"Drained", status, "AdminRequested", now, "by a person"};
    return world;
  };
  World theirs = with("True");
  EXPECT_EQ(theirs.changes(true), "") << "it says the same";
  theirs.proved = false;
  EXPECT_EQ(theirs.changes(), "") << "and it is not ours to take back";
  const World taken = with("False");
  EXPECT_EQ(taken.changes(), "+Drained");
  EXPECT_TRUE(taken.patch()[0].contains("lastTransitionTime"));
  for (const char* status : {"Unknown", ""}) EXPECT_EQ(with(status).changes(true), "") << status;
  for (const char* status : {"False", "Unknown", ""}) {
    World over = with(status);
    over.proved = false;
    EXPECT_EQ(over.changes(), "") << status;
  }
}

TEST(LifecycleConditions, EverythingGoesWithOnePatch) {
  World world(State::ready, Cordon::ours);
  world.show();
  world.node.conditions.push_back({"HauloutMaintenance", "True", "Draining", now});
  world.node.conditions.push_back({"MaintenancePlanned", "True", "Storage", now, "by the storage operator"});
  world.record = Record();
  world.node.unschedulable = false;
  EXPECT_EQ(world.changes(), "-Drained -MaintenanceInProgress -HauloutMaintenance");
  const auto all = conditions_patch(world.node, {}, now, false);
  ASSERT_TRUE(all);
  EXPECT_THAT(*all, HasSubstr(R"({"type":"Drained","$patch":"delete"})"));
}

TEST(LifecycleConditions, AMessageIsNoLongerThanItsLimit) {
  World world(State::draining, Cordon::ours);
  world.status.message = std::string(5000, 'x');
  EXPECT_LE(world.patch()[0]["message"].get<std::string>().size(), 1100u);
}

}  // namespace
}  // namespace haulout::agent
