#include "agent/node/node_status.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace haulout::agent {
namespace {

using Json = nlohmann::json;

k8s::Node a_node() {
  k8s::Node node;
  node.name = "n1";
  node.uid = "u1";
  node.resource_version = "42";
  return node;
}

std::optional<std::string> patch_to_show(const k8s::Node& node, const Record& record, const Status& status, Need need,
                                         std::string_view served = {}) {
  return status_patch(node, record, encode_record(record), status, need, served);
}

TEST(NodeStatus, LabelsMessageAndRecordAreOneGuardedPatch) {
  Record record;
  record.state = State::pending;
  const auto patch = patch_to_show(a_node(), record, {State::pending, "Paused", "paused: audit"}, Need::yes);
  ASSERT_TRUE(patch);
  const Json json = Json::parse(*patch);
  EXPECT_EQ(json["metadata"]["resourceVersion"], "42");
  EXPECT_EQ(json["metadata"]["labels"]["haulout.dev/state"], "pending");
  EXPECT_EQ(json["metadata"]["labels"]["haulout.dev/reason"], "Paused");
  EXPECT_EQ(json["metadata"]["labels"]["haulout.dev/reboot-required"], "true");
  EXPECT_EQ(json["metadata"]["annotations"]["haulout.dev/message"], "paused: audit");
  EXPECT_EQ(decode_record(json["metadata"]["annotations"]["haulout.dev/record"].get<std::string>()), record);
  EXPECT_FALSE(json.contains("spec"));
}

TEST(NodeStatus, ALabelShowsTheLastVersionThatHasFailed) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"42.1", "42.1"},  {"42.1 (sha256:0123)", "42.1__sha256_0123"},  {" +1~", "1"},
      {"~~", "unnamed"}, {std::string(80, 'x'), std::string(63, 'x')},
  };
  for (const auto& [version, label] : rows) {
    Record record;
    record.failed_versions = {"old", version};
    k8s::Node node = a_node();
    const Json json = Json::parse(*patch_to_show(node, record, {}, Need::no));
    EXPECT_EQ(json["metadata"]["labels"]["haulout.dev/failed-version"], label);
    node.labels["haulout.dev/failed-version"] = label;
    EXPECT_TRUE(Json::parse(*no_status_patch(node))["metadata"]["labels"]["haulout.dev/failed-version"].is_null());
    const Json later = Json::parse(*patch_to_show(node, Record{}, {}, Need::no));
    EXPECT_TRUE(later["metadata"]["labels"].contains("haulout.dev/failed-version"));
    EXPECT_TRUE(later["metadata"]["labels"]["haulout.dev/failed-version"].is_null());
  }
  EXPECT_FALSE(Json::parse(*patch_to_show(a_node(), Record{}, {}, Need::no))["metadata"]["labels"].contains(
      "haulout.dev/failed-version"));
}

TEST(NodeStatus, NothingIsWrittenTwice) {
  k8s::Node node = a_node();
  const Record record;
  node.labels = {{"haulout.dev/state", "unknown"}, {"haulout.dev/reboot-required", "unknown"}};
  node.annotations = {{"haulout.dev/record", encode_record(record)}};
  EXPECT_EQ(patch_to_show(node, record, {State::unknown, {}, {}}, Need::unknown), std::nullopt);
}

// The message is cut, because it may contain text of other programs, and the server refuses annotations of more than
// 256 KiB in total.
TEST(NodeStatus, AMessageOfAnyLengthIsWritten) {
  std::string invisible = "xxx";
  for (int i = 0; i < 100'000; ++i) invisible += "\u200b";
  k8s::Node empty = a_node();
  const Json cut = Json::parse(*patch_to_show(empty, Record{}, {State::draining, "", invisible}, Need::yes));
  EXPECT_LE(cut["metadata"]["annotations"]["haulout.dev/message"].get<std::string>().size(), 4096u);

  const Status status{State::draining, "BlockedByBudget", std::string(300'000, 'x')};
  Record record;
  record.state = State::draining;
  k8s::Node node = a_node();
  const Json json = Json::parse(*patch_to_show(node, record, status, Need::yes));
  const auto message = json["metadata"]["annotations"]["haulout.dev/message"].get<std::string>();
  EXPECT_LE(message.size(), 1100u);
  EXPECT_TRUE(message.starts_with("xxx")) << message;
  node.annotations["haulout.dev/message"] = message;
  const auto again = patch_to_show(node, record, status, Need::yes);
  ASSERT_TRUE(again);
  EXPECT_FALSE(Json::parse(*again)["metadata"]["annotations"].contains("haulout.dev/message")) << "not written twice";
}

TEST(NodeStatus, AReasonThatHasGoneIsRemovedAndForeignKeysStay) {
  k8s::Node node = a_node();
  node.labels = {{"haulout.dev/reason", "Paused"}, {"team", "blue"}};
  node.annotations = {{"haulout.dev/message", "paused"}, {"haulout.dev/request", "reboot"}, {"x", "y"}};
  const Json json = Json::parse(*patch_to_show(node, Record{}, {State::idle, {}, {}}, Need::no, "reboot"));
  EXPECT_TRUE(json["metadata"]["labels"]["haulout.dev/reason"].is_null());
  EXPECT_TRUE(json["metadata"]["annotations"]["haulout.dev/message"].is_null());
  EXPECT_TRUE(json["metadata"]["annotations"]["haulout.dev/request"].is_null());
  EXPECT_FALSE(json["metadata"]["labels"].contains("team"));
  EXPECT_FALSE(json["metadata"]["annotations"].contains("x"));
}

TEST(NodeStatus, ARequestIsExactlyTheWord) {
  k8s::Node node = a_node();
  constexpr WallTime noon = std::chrono::sys_days(std::chrono::year(2026) / 12 / 24) + std::chrono::hours(12);
  EXPECT_FALSE(reboot_requested(node, noon));
  struct Case {
    std::string value;
    std::optional<WallTime> from;
  };
  const Case cases[] = {{"reboot", WallTime::min()},
                        {"reboot; new disk", WallTime::min()},
                        {"reboot please", std::nullopt},
                        {"reboot at 2026-12-24T12:00:00Z", noon},
                        {"reboot at 2026-12-24T13:00:00+01:00; new disk", noon},
                        {"reboot at 2026-12-24T12:00:00Z ; new disk", noon},
                        {" reboot ; new disk", WallTime::min()},
                        {"reboot at tomorrow", std::nullopt},
                        {"reboot at 2026-12-24T12:00", std::nullopt},
                        {"reboot at ", std::nullopt},
                        {"", std::nullopt}};
  for (const Case& one : cases) {
    node.annotations["haulout.dev/request"] = one.value;
    EXPECT_EQ(reboot_request(node), one.from) << one.value;
    EXPECT_EQ(reboot_requested(node, noon), one.from.has_value()) << one.value;
    EXPECT_EQ(reboot_requested(node, noon - std::chrono::seconds(1)), one.from == WallTime::min()) << one.value;
  }
  node.annotations["haulout.dev/request"] = written_request(noon);
  EXPECT_EQ(reboot_request(node), noon);
}

TEST(NodeStatus, ARequestThatCannotBeReadIsToldWithTheWayOut) {
  k8s::Node node = a_node();
  node.name = "n1";
  EXPECT_FALSE(unreadable_request(node));
  for (const char* value : {"", "reboot", " reboot ; new disk", "reboot at 2026-12-24T12:00:00Z"}) {
    node.annotations["haulout.dev/request"] = value;
    EXPECT_FALSE(unreadable_request(node)) << value;
  }
  for (const char* value : {"rebot", "reboot at tomorrow", "reboot at 2026-12-24T12:00", "; why", "true"}) {
    node.annotations["haulout.dev/request"] = value;
    EXPECT_THAT(unreadable_request(node).value_or(""),
                ::testing::AllOf(::testing::HasSubstr("haulout.dev/request"),
                                 ::testing::HasSubstr(std::string("\"") + value + "\""),
                                 ::testing::HasSubstr("haulout request-reboot n1")));
  }
  node.annotations["haulout.dev/request"] = std::string(5000, 'x') + "\n";
  EXPECT_LT(unreadable_request(node).value().size(), 400u);
}

TEST(NodeStatus, WhichRequestABootServes) {
  constexpr WallTime noon = std::chrono::sys_days(std::chrono::year(2026) / 12 / 24) + std::chrono::hours(12);
  k8s::Node node = a_node();
  EXPECT_EQ(served_request(node, true, noon), "");
  node.annotations["haulout.dev/request"] = "reboot; new disk";
  EXPECT_EQ(served_request(node, false, noon), "reboot; new disk") << "any boot";
  node.annotations["haulout.dev/request"] = "reboot at 2026-12-24T12:00:00Z";
  EXPECT_EQ(served_request(node, false, noon), "") << "a boot whose time is unknown";
  EXPECT_EQ(served_request(node, true, noon), "reboot at 2026-12-24T12:00:00Z");
  EXPECT_EQ(served_request(node, true, noon - std::chrono::seconds(1)), "") << "a person has put it off meanwhile";
  // A person has written another request since the boot.
  const std::string served = served_request(node, true, noon);
  node.annotations["haulout.dev/request"] = "reboot at 2026-12-31T12:00:00Z";
  const auto patch = patch_to_show(node, Record{}, {State::idle, {}, {}}, Need::no, served);
  ASSERT_TRUE(patch);
  EXPECT_EQ(patch->find("haulout.dev/request"), std::string::npos) << *patch;
}

TEST(NodeStatus, WhoIsAskedHasATicket) {
  Record record;
  record.state = State::draining;
  record.hooks_asked = WallTime(std::chrono::seconds(5));
  k8s::Node node = a_node();
  const Json json = Json::parse(*patch_to_show(node, record, {State::draining, {}, {}}, Need::yes));
  EXPECT_EQ(json["metadata"]["annotations"]["haulout.dev/hook"], "before-drain@1970-01-01T00:00:05.000000Z");
  record.hooks_asked.reset();
  node.annotations["haulout.dev/hook"] = "before-drain@1970-01-01T00:00:05.000000Z";
  const Json after = Json::parse(*patch_to_show(node, record, {State::draining, {}, {}}, Need::yes));
  EXPECT_TRUE(after["metadata"]["annotations"]["haulout.dev/hook"].is_null());
}

// P5: the agent changes the label that excludes the node from load balancers only if the label is missing or has the
// agent's own value.
TEST(NodeStatus, LoadBalancersAreTheAgentsOnlyByItsValue) {
  const std::string key = "node.kubernetes.io/exclude-from-external-load-balancers";
  k8s::Node node = a_node();
  EXPECT_EQ(exclude_patch(node, false), std::nullopt);
  const Json set = Json::parse(exclude_patch(node, true).value());
  EXPECT_EQ(set["metadata"]["resourceVersion"], "42");
  EXPECT_EQ(set["metadata"]["labels"][key], "haulout");
  node.labels[key] = "haulout";
  EXPECT_EQ(exclude_patch(node, true), std::nullopt);
  EXPECT_TRUE(Json::parse(exclude_patch(node, false).value())["metadata"]["labels"][key].is_null());
  for (const char* foreign : {"", "true", "karpenter"}) {
    node.labels[key] = foreign;
    EXPECT_EQ(exclude_patch(node, true), std::nullopt);
    EXPECT_EQ(exclude_patch(node, false), std::nullopt);
  }
}

TEST(NodeStatus, MaintenanceLastsFromTheCordonUntilItIsTakenBack) {
  const struct {
    State state;
    bool uncordon;
    const char* run;
    bool maintenance;
  } rows[] = {
      {State::idle, false, "", false},          {State::waiting, false, "", false},
      {State::draining, false, "run-1", true},  {State::rebooting, false, "run-1", true},
      {State::verifying, false, "run-1", true}, {State::soaking, false, "", false},
      {State::degraded, false, "run-1", true},  {State::degraded, true, "", false},
      {State::degraded, true, "run-1", true},  // the cordon is not taken back yet
      {State::pending, false, "run-1", true},  // the cordon is not taken back yet
      {State::verifying, false, "", false},    // a reboot during the soak time; the node has taken pods again
      {State::degraded, false, "", false},     // the same, but the verification failed
  };
  for (const auto& row : rows) {
    Record record;
    record.state = row.state;
    record.uncordon = row.uncordon;
    record.run = row.run;
    EXPECT_EQ(in_maintenance(record), row.maintenance) << to_string(row.state) << " " << row.run;
  }
  EXPECT_TRUE(in_maintenance(decode_record("{"))) << "nobody knows";
}

TEST(NodeStatus, ThePoolIsALabel) {
  k8s::Node node = a_node();
  Record record;
  record.pool = "db";
  const auto pool_in = [&] {
    const auto patch = patch_to_show(node, record, {State::unknown, {}, {}}, Need::unknown);
    const Json labels = patch ? Json::parse(*patch)["metadata"].value("labels", Json::object()) : Json::object();
    return labels.value("haulout.dev/pool", "untouched");
  };
  EXPECT_EQ(pool_in(), "db");
  node.labels["haulout.dev/pool"] = "db";
  node.annotations["haulout.dev/record"] = encode_record(record);
  EXPECT_EQ(pool_in(), "untouched");
  EXPECT_TRUE(Json::parse(no_status_patch(node).value())["metadata"]["labels"]["haulout.dev/pool"].is_null());
  record.pool = "web";
  EXPECT_EQ(pool_in(), "web") << "it has moved to another one";
  node.labels["haulout.dev/pool"] = "blue";
  EXPECT_EQ(pool_in(), "untouched") << "a person wrote that";
  EXPECT_FALSE(Json::parse(no_status_patch(node).value())["metadata"].contains("labels"));
  record.pool.clear();
  node.labels.clear();
  EXPECT_EQ(pool_in(), "untouched");
}

TEST(NodeStatus, WhatPeopleWroteStaysWhenEverythingIsTakenBack) {
  k8s::Node node = a_node();
  EXPECT_EQ(no_status_patch(node), std::nullopt);
  node.labels = {{"haulout.dev/state", "idle"}, {"haulout.dev/pool", "blue"}};
  node.annotations = {{"haulout.dev/record", "{}"}, {"haulout.dev/pause", "; audit"}, {"haulout.dev/hook", "x"}};
  const Json json = Json::parse(no_status_patch(node).value());
  EXPECT_EQ(json["metadata"]["labels"], (Json{{"haulout.dev/state", nullptr}}));
  EXPECT_EQ(json["metadata"]["annotations"], (Json{{"haulout.dev/record", nullptr}, {"haulout.dev/hook", nullptr}}));
}

constexpr const char* scale_down = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
constexpr const char* karpenter = "karpenter.sh/do-not-disrupt";
constexpr const char* held = "haulout.dev/held-autoscalers";

const std::string both = std::string(scale_down) + "," + karpenter;

Json hold_changes(const k8s::Node& node, Duty duty) {
  const auto patch = hold_patch(node, duty);
  if (!patch) return Json::object();
  const Json json = Json::parse(*patch);
  EXPECT_EQ(json["metadata"]["resourceVersion"], "42");
  return json["metadata"]["annotations"];
}

TEST(NodeStatus, AutoscalersAreHeldWhileTheNodeHasItsSlot) {
  const struct {
    State state;
    const char* run;
    const char* cause;
    Duty duty;
  } rows[] = {
      {State::unknown, "", "", Duty::no},
      {State::idle, "", "", Duty::no},
      {State::pending, "", "", Duty::no},
      {State::waiting, "", "", Duty::no},
      {State::draining, "run-1", "", Duty::yes},
      {State::updating, "run-1", "", Duty::yes},
      {State::ready, "run-1", "", Duty::yes},
      {State::rebooting, "run-1", "", Duty::yes},
      {State::verifying, "run-1", "", Duty::yes},
      {State::uncordoning, "run-1", "", Duty::yes},
      {State::soaking, "", "", Duty::yes},
      // A degraded node is held while it is out of service.
      {State::degraded, "run-1", "RolledBack", Duty::yes},
      {State::degraded, "", "RebootFailed", Duty::no},
      {State::degraded, "", "TooManyReboots", Duty::no},
      {State::degraded, "", "RecordUnreadable", Duty::keep},
  };
  for (const auto& row : rows) {
    Record record;
    record.state = row.state;
    record.run = row.run;
    record.cause = row.cause;
    EXPECT_EQ(hold_duty(record, true), row.duty) << to_string(row.state) << row.cause;
    // With the option switched off, what an earlier agent has set is taken back.
    EXPECT_EQ(hold_duty(record, false), row.duty == Duty::keep ? Duty::keep : Duty::no) << to_string(row.state);
  }
}

// An admission policy may refuse the annotations for autoscalers. The record must be written all the same.
TEST(NodeStatus, AutoscalersAreNotInThePatchOfTheRecord) {
  Record record;
  record.state = State::draining;
  record.run = "run-1";
  const auto patch = patch_to_show(a_node(), record, {.state = State::draining}, Need::yes).value();
  k8s::Node node = a_node();
  node.annotations = {{scale_down, "true"}, {held, scale_down}, {"haulout.dev/record", "{}"}};
  for (const std::string& text : {patch, no_status_patch(node).value()})
    for (const char* key : {scale_down, karpenter, held}) EXPECT_EQ(text.find(key), text.npos) << text;
}

// P5: what a person has set, changed or removed stays as the person left it.
TEST(NodeStatus, P5_AnnotationsForAutoscalersOfOthersStay) {
  struct Row {
    const char* name;
    std::map<std::string, std::string> before;
    Json during, at_the_end;  // the changes during the hold and at its end
  };
  const Row table[] = {
      {"the hold begins", {}, {{scale_down, "true"}, {karpenter, "true"}, {held, both}}, Json::object()},
      {"it stands",
       {{scale_down, "true"}, {karpenter, "true"}, {held, both}},
       Json::object(),
       {{scale_down, nullptr}, {karpenter, nullptr}, {held, nullptr}}},
      {"one was there", {{karpenter, "true"}}, {{scale_down, "true"}, {held, scale_down}}, Json::object()},
      {"with another value", {{karpenter, "false"}}, {{scale_down, "true"}, {held, scale_down}}, Json::object()},
      {"with no value", {{karpenter, ""}}, {{scale_down, "true"}, {held, scale_down}}, Json::object()},
      {"both were there", {{karpenter, "true"}, {scale_down, "true"}}, {{held, "none"}}, Json::object()},
      {"theirs stays theirs",
       {{karpenter, "true"}, {scale_down, "true"}, {held, scale_down}},
       Json::object(),
       {{scale_down, nullptr}, {held, nullptr}}},
      {"one of theirs was removed during the hold", {{held, "none"}}, Json::object(), {{held, nullptr}}},
      {"one of ours was removed",
       {{scale_down, "true"}, {held, both}},
       {{held, scale_down}},
       {{scale_down, nullptr}, {held, nullptr}}},
      {"one of ours was removed, and it is known",
       {{scale_down, "true"}, {held, scale_down}},
       Json::object(),
       {{scale_down, nullptr}, {held, nullptr}}},
      {"a person has set it again since",
       {{scale_down, "true"}, {karpenter, "true"}, {held, scale_down}},
       Json::object(),
       {{scale_down, nullptr}, {held, nullptr}}},
      {"one of ours was changed",
       {{scale_down, "yes"}, {karpenter, "true"}, {held, both}},
       {{held, karpenter}},
       {{karpenter, nullptr}, {held, nullptr}}},
      {"all of ours were removed", {{held, both}}, {{held, "none"}}, {{held, nullptr}}},
      {"a mark that names parts of names",
       {{scale_down, "true"}, {held, "disabled,x" + std::string(scale_down)}},
       {{held, "none"}},
       {{held, nullptr}}},
  };
  for (const Row& row : table) {
    k8s::Node node = a_node();
    node.annotations = row.before;
    EXPECT_EQ(hold_changes(node, Duty::yes), row.during) << row.name;
    EXPECT_EQ(hold_changes(node, Duty::no), row.at_the_end) << row.name;
    EXPECT_EQ(hold_patch(node, Duty::keep), std::nullopt) << row.name;
  }
}

// The decoder keeps only so many annotations, so the agent cannot know whether a person has set one of these.
TEST(NodeStatus, P5_NoHoldBeginsWhereNotAllAnnotationsAreKnown) {
  k8s::Node node = a_node();
  for (std::size_t i = 0; i < 1000; ++i) node.annotations["x/" + std::to_string(i)] = "";
  EXPECT_EQ(hold_patch(node, Duty::yes), std::nullopt);
  node.annotations.erase("x/0");
  EXPECT_NE(hold_patch(node, Duty::yes), std::nullopt);
}

// The agent does not overwrite a record that it cannot read: a newer version of the agent may be able to read it.
TEST(NodeStatus, ARecordThatCannotBeReadStaysOnTheNode) {
  k8s::Node node;
  node.annotations = {{"haulout.dev/record", R"({"v":2})"}};
  const Record record = decode_record(shown_record(node));
  const Json json =
      Json::parse(patch_to_show(node, record, {.state = record.state, .reason = record.cause}, Need::no).value());
  EXPECT_EQ(json["metadata"]["labels"]["haulout.dev/state"], "degraded");
  EXPECT_FALSE(json["metadata"].value("annotations", Json::object()).contains("haulout.dev/record"));
}

}  // namespace
}  // namespace haulout::agent
