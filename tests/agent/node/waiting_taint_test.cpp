#include "agent/node/waiting_taint.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "drain/reasons.hpp"
#include "k8s/codec.hpp"

namespace haulout::agent {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

TEST(WaitingTaint, IsAKeyWithADomainAndPerhapsAValue) {
  const WaitingTaint key_only = parse_waiting_taint("weave.works/kured-node-reboot").value();
  EXPECT_EQ(key_only, (WaitingTaint{"weave.works/kured-node-reboot", ""}));
  EXPECT_EQ(words_of(key_only), "weave.works/kured-node-reboot:PreferNoSchedule");
  const WaitingTaint both = parse_waiting_taint("example.com/waits=for.an-update").value();
  EXPECT_EQ(both, (WaitingTaint{"example.com/waits", "for.an-update"}));
  EXPECT_EQ(words_of(both), "example.com/waits=for.an-update:PreferNoSchedule");
  EXPECT_TRUE(parse_waiting_taint("haulout.dev/update=").has_value());
  EXPECT_TRUE(parse_waiting_taint("mykubernetes.io/waits").has_value());
}

TEST(WaitingTaint, IsRefusedWithTheReason) {
  const struct {
    const char* text;
    const char* why;
  } rows[] = {
      {"", "needs a domain"},
      {"ToBeDeletedByClusterAutoscaler", "needs a domain"},
      {"example.com/a:NoSchedule", "the effect is always PreferNoSchedule"},
      {"example.com/a=b:PreferNoSchedule", "the effect is always PreferNoSchedule"},
      {"example.com/", "like the key of a label"},
      {"/a", "like the key of a label"},
      {"example.com/a b", "like the key of a label"},
      {"example.com/a,example.com/b", "like the key of a label"},
      {"Example.com/a/b", "like the key of a label"},
      {"!example.com/a", "like the key of a label"},
      {"example.com/a=b c", "like the value of a label"},
      {"example.com/a=b=c", "like the value of a label"},
      {"example.com/a=-", "like the value of a label"},
      {"node.kubernetes.io/out-of-service=nodeshutdown", "domain kubernetes.io"},
      {"kubernetes.io/a", "domain kubernetes.io"},
      {"readiness.k8s.io/a", "domain k8s.io"},
      {"k8s.io/a", "domain k8s.io"},
      {"x-k8s.io/a", "domain x-k8s.io"},
      {"node.cluster.x-k8s.io/uninitialized", "domain x-k8s.io"},
      {"karpenter.sh/disrupted", "domain karpenter.sh"},
  };
  for (const auto& row : rows) {
    const auto taint = parse_waiting_taint(row.text);
    ASSERT_FALSE(taint) << row.text;
    EXPECT_THAT(taint.error().message(), HasSubstr(row.why)) << row.text;
  }
}

TEST(WaitingTaint, IsThereFromTheNeedUntilTheNodeIsBack) {
  const struct {
    State state;
    Duty duty;
  } rows[] = {
      {State::unknown, Duty::keep},   {State::idle, Duty::no},       {State::pending, Duty::yes},
      {State::waiting, Duty::yes},    {State::draining, Duty::yes},  {State::updating, Duty::yes},
      {State::ready, Duty::yes},      {State::rebooting, Duty::yes}, {State::verifying, Duty::yes},
      {State::uncordoning, Duty::no}, {State::soaking, Duty::no},    {State::degraded, Duty::no},
  };
  for (const auto& row : rows) {
    Record record;
    record.state = row.state;
    EXPECT_EQ(waiting_taint_duty(record, true), row.duty) << to_string(row.state);
    EXPECT_EQ(waiting_taint_duty(record, false), row.duty == Duty::keep ? Duty::keep : Duty::no)
        << to_string(row.state);
    record.cause = reason::record_unreadable;
    EXPECT_EQ(waiting_taint_duty(record, true), Duty::keep) << to_string(row.state);
  }
}

const WallTime now = k8s::parse_time("2026-11-27T18:00:00Z").value() + std::chrono::milliseconds(300);
constexpr const char* mark = "haulout.dev/waiting-taint";
constexpr const char* our_mark = "example.com/waits=yes:PreferNoSchedule@2026-11-27T18:00:00Z";

k8s::Taint taint_of(const char* key, const char* value, const char* effect, const char* time = "") {
  const auto added = k8s::parse_time(time);
  return {key, effect, added ? std::optional(*added) : std::nullopt, value};
}
const k8s::Taint ours = taint_of("example.com/waits", "yes", "PreferNoSchedule", "2026-11-27T18:00:00Z");
const k8s::Taint cordon = taint_of("node.kubernetes.io/unschedulable", "", "NoSchedule", "2026-11-27T17:00:00Z");
const Json our_json = {{"key", "example.com/waits"},
                       {"value", "yes"},
                       {"effect", "PreferNoSchedule"},
                       {"timeAdded", "2026-11-27T18:00:00Z"}};
const Json cordon_json = {
    {"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}, {"timeAdded", "2026-11-27T17:00:00Z"}};

// Returns the changes of the patch: {"mark": …, "taints": […]}, each only if it is in the patch.
Json changes(const std::vector<k8s::Taint>& taints, const char* shown, Duty duty,
             const std::optional<WaitingTaint>& wanted = WaitingTaint{"example.com/waits", "yes"}) {
  k8s::Node node;
  node.resource_version = "42";
  node.taints = taints;
  if (*shown) node.annotations[mark] = shown;
  const auto patch = waiting_taint_patch(node, duty, wanted, now);
  if (!patch) return Json::object();
  const Json json = Json::parse(*patch);
  EXPECT_EQ(json["metadata"]["resourceVersion"], "42");
  Json out = Json::object();
  if (json["metadata"].contains("annotations")) out["mark"] = json["metadata"]["annotations"].at(mark);
  if (json.contains("spec")) out["taints"] = json["spec"].at("taints");
  return out;
}

TEST(WaitingTaint, IsAddedAndTakenBackTogetherWithItsMark) {
  EXPECT_EQ(changes({}, "", Duty::yes), (Json{{"mark", our_mark}, {"taints", {our_json}}}));
  EXPECT_EQ(changes({cordon}, "", Duty::yes), (Json{{"mark", our_mark}, {"taints", {cordon_json, our_json}}}));
  EXPECT_EQ(changes({ours, cordon}, our_mark, Duty::yes), Json::object());
  EXPECT_EQ(changes({ours, cordon}, our_mark, Duty::no), (Json{{"mark", nullptr}, {"taints", {cordon_json}}}));
  EXPECT_EQ(changes({ours}, our_mark, Duty::no), (Json{{"mark", nullptr}, {"taints", nullptr}}));
  EXPECT_EQ(changes({ours}, our_mark, Duty::yes, {}), (Json{{"mark", nullptr}, {"taints", nullptr}}));
  EXPECT_EQ(changes({}, "", Duty::yes, {}), Json::object());
  EXPECT_EQ(changes({}, "", Duty::no), Json::object());
  EXPECT_EQ(changes({ours}, our_mark, Duty::keep), Json::object());
}

TEST(WaitingTaint, AnotherTaintOfTheOptionsReplacesIt) {
  const Json next = {
      {"key", "example.com/next"}, {"effect", "PreferNoSchedule"}, {"timeAdded", "2026-11-27T18:00:00Z"}};
  EXPECT_EQ(
      changes({ours, cordon}, our_mark, Duty::yes, WaitingTaint{"example.com/next"}),
      (Json{{"mark", "example.com/next=:PreferNoSchedule@2026-11-27T18:00:00Z"}, {"taints", {cordon_json, next}}}));
}

// P5: a taint that somebody else has set, or has set anew, is not the agent's, even if it looks the same.
TEST(WaitingTaint, P5_TaintsOfOthersStay) {
  const k8s::Taint theirs = taint_of("example.com/waits", "yes", "PreferNoSchedule");
  const k8s::Taint later = taint_of("example.com/waits", "yes", "PreferNoSchedule", "2026-11-27T18:00:01Z");
  const k8s::Taint other_value = taint_of("example.com/waits", "no", "PreferNoSchedule", "2026-11-27T18:00:00Z");
  for (const k8s::Taint& taint : {theirs, later, other_value}) {
    // The agent adds none beside it, which the API would refuse.
    EXPECT_EQ(changes({taint}, "", Duty::yes), Json::object());
    EXPECT_EQ(changes({taint}, "", Duty::no), Json::object());
    // It has taken the place of the agent's.
    EXPECT_EQ(changes({taint}, our_mark, Duty::yes), (Json{{"mark", "none"}}));
    EXPECT_EQ(changes({taint}, our_mark, Duty::no), (Json{{"mark", nullptr}}));
  }
  // Another effect is another taint.
  const k8s::Taint strict = taint_of("example.com/waits", "yes", "NoSchedule");
  const Json strict_json = {{"key", "example.com/waits"}, {"value", "yes"}, {"effect", "NoSchedule"}};
  EXPECT_EQ(changes({strict}, "", Duty::yes), (Json{{"mark", our_mark}, {"taints", {strict_json, our_json}}}));
  // A mark without a time names no taint, even if a taint without a time looks like it.
  EXPECT_EQ(changes({theirs}, "example.com/waits=yes:PreferNoSchedule@", Duty::no), (Json{{"mark", nullptr}}));
}

// P5: a person has removed the taint. It is not set again in this update.
TEST(WaitingTaint, P5_WhatAPersonRemovesIsNotSetAgain) {
  EXPECT_EQ(changes({}, our_mark, Duty::yes), (Json{{"mark", "none"}}));
  EXPECT_EQ(changes({}, "none", Duty::yes), Json::object());
  EXPECT_EQ(changes({cordon}, "none", Duty::no), (Json{{"mark", nullptr}}));
  EXPECT_EQ(changes({}, "nonsense", Duty::yes), (Json{{"mark", "none"}}));
}

}  // namespace
}  // namespace haulout::agent
