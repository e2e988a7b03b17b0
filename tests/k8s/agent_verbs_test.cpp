// Requests of the agent for objects other than Leases: its own identity, the status of its Node, Events, ConfigMaps.
#include <gmock/gmock.h>

#include "k8s/client.hpp"
#include "k8s/status.hpp"
#include "tests/k8s/fixtures.hpp"
#include "tests/support/scripted_transport.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::k8s {
namespace {

using haulout::testing::json_response;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using namespace std::chrono_literals;

NodeEvent event() {
  NodeEvent out;
  out.name = "n1.17f0";
  out.node = "n1";
  out.node_uid = "nu";
  out.type = NodeEvent::Type::warning;
  out.reason = "RebootFailed";
  out.action = "Reboot";
  out.note = "the boot id did not change";
  out.reporting_controller = "haulout.dev/agent";
  out.reporting_instance = "haulout-x7";
  out.event_time = *parse_time("2026-11-21T01:00:00.25Z");
  return out;
}

TEST(EventRequests, ACreation) {
  const auto request = create(event(), {DryRun::none, FieldValidation::strict});
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target,
            "/apis/events.k8s.io/v1/namespaces/default/events?fieldManager=haulout&fieldValidation=Strict");
  EXPECT_EQ(request.body,
            R"({"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"n1.17f0","namespace":"default"},)"
            R"("eventTime":"2026-11-21T01:00:00.250000Z","reportingController":"haulout.dev/agent",)"
            R"("reportingInstance":"haulout-x7","action":"Reboot","reason":"RebootFailed",)"
            R"("regarding":{"apiVersion":"v1","kind":"Node","name":"n1","uid":"nu"},"type":"Warning",)"
            R"("note":"the boot id did not change"})");
}

TEST(EventRequests, ARepetitionIsAnAbsoluteCount) {
  const auto request = repeat_event("default", "n1.17f0", 3, *parse_time("2026-11-21T01:00:00Z"), {});
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.target, "/apis/events.k8s.io/v1/namespaces/default/events/n1.17f0?fieldManager=haulout");
  EXPECT_EQ(request.headers.find("Content-Type"), "application/merge-patch+json");
  EXPECT_EQ(request.body, R"({"series":{"count":3,"lastObservedTime":"2026-11-21T01:00:00.000000Z"}})");
  EXPECT_TRUE(request.repeatable);
}

// Returns the note as it is in the encoded Event.
std::string sent_note(std::string note) {
  auto one = event();
  one.note = std::move(note);
  const auto body = create(one, {}).body;
  const auto begin = body.find(R"("note":")") + 8;
  return body.substr(begin, body.size() - begin - 2);
}

TEST(EventRequests, TextsAreCutBetweenCharacters) {
  const std::string full(1024, 'x');
  EXPECT_EQ(sent_note(full), full);
  EXPECT_EQ(sent_note(full + "y"), full);
  // The last character, of two, three or four bytes, does not fit.
  for (const char* wide : {"é", "€", "🐋"}) {
    for (std::size_t missing = 1; missing < std::string(wide).size(); ++missing) {
      const std::string before(1024 - missing, 'x');
      EXPECT_EQ(sent_note(before + wide + wide), before) << wide << missing;
    }
    const std::string fits(1024 - std::string(wide).size(), 'x');
    EXPECT_EQ(sent_note(fits + wide + wide), fits + wide) << wide;
  }
  // Each byte that is not valid UTF-8 is sent as three bytes, and counts as three.
  EXPECT_LE(sent_note(std::string(1024, '\xff')).size(), 1024u);
  auto one = event();
  one.reason = one.action = one.reporting_instance = std::string(129, 'R');
  const auto body = create(one, {}).body;
  for (const char* field : {"reason", "action", "reportingInstance"})
    EXPECT_THAT(body, HasSubstr('"' + std::string(field) + R"(":")" + std::string(128, 'R') + '"'));
}

TEST(EventRequestsDeathTest, AnEventHasAName) {
  auto one = event();
  one.name.clear();
  EXPECT_DEATH(create(one, {}), "Event name");
  EXPECT_DEATH(repeat_event("", "n", 2, WallTime(), {}), "namespace");
}

TEST(NodeStatusRequests, IsAStrategicPatchOfTheSubresource) {
  const auto request = patch_node_status("n1", R"({"status":{}})", {});
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.target, "/api/v1/nodes/n1/status?fieldManager=haulout");
  EXPECT_EQ(request.headers.find("Content-Type"), "application/strategic-merge-patch+json");
  EXPECT_EQ(request.body, R"({"status":{}})");
  EXPECT_FALSE(request.repeatable);
}

TEST(NodeCodec, BootAndConditions) {
  const auto node = decode<Node>(
      R"({"kind":"Node","metadata":{"name":"n1","uid":"nu","resourceVersion":"9"},"status":{"conditions":[)"
      R"({"type":"HauloutMaintenance","status":"True","reason":"Draining","message":"x"},)"
      R"({"type":"Drained","status":"True","reason":"DrainCompleted","message":"y",)"
      R"("lastHeartbeatTime":"1970-01-01T00:00:01Z"},)"
      R"({"type":"MemoryPressure","status":"False","reason":"Enough","message":"z",)"
      R"("lastHeartbeatTime":"1970-01-01T00:00:01Z"},{"type":"Ready","status":"True"}],)"
      R"("nodeInfo":{"bootID":"b1","osImage":"Debian GNU/Linux 12","kernelVersion":"6.1.0-42","machineID":"m"}}})");
  ASSERT_TRUE(node) << node.error().message();
  EXPECT_EQ(node->boot_id, "b1");
  EXPECT_EQ(node->os_image, "Debian GNU/Linux 12");
  EXPECT_EQ(node->kernel_version, "6.1.0-42");
  EXPECT_TRUE(node->ready);
  // The reasons, heartbeats and messages of other conditions are not kept.
  EXPECT_THAT(node->conditions,
              ElementsAre(NodeCondition{"HauloutMaintenance", "True", "Draining", {}, "x"},
                          NodeCondition{"Drained", "True", "DrainCompleted", WallTime(std::chrono::seconds(1)), "y"},
                          NodeCondition{"MemoryPressure", "False"}, NodeCondition{"Ready", "True"}));
}

// P12: a program that writes conditions without end must not displace those of Haulout, nor fill the memory.
TEST(NodeCodec, P12_OnlySoManyConditionsAreKept) {
  nlohmann::json json = {{"kind", "Node"}, {"metadata", {{"name", "n1"}, {"uid", "u"}, {"resourceVersion", "9"}}}};
  auto& conditions = json["status"]["conditions"];
  conditions.push_back({{"type", std::string(317, 'x')}, {"status", "True"}});
  conditions.push_back({{"type", "Haulout" + std::string(317, 'x')}, {"status", "True"}});
  for (int i = 0; i < 1000; ++i) conditions.push_back({{"type", "Other" + std::to_string(i)}, {"status", "True"}});
  conditions.push_back({{"type", "HauloutMaintenance"}, {"status", "True"}});
  for (int i = 0; i < 1000; ++i) conditions.push_back({{"type", "Haulout" + std::to_string(i)}, {"status", "True"}});
  const auto node = decode<Node>(json.dump());
  ASSERT_TRUE(node) << node.error().message();
  ASSERT_EQ(node->conditions.size(), 110u);
  EXPECT_EQ(node->conditions.front().type, "Other0");
  EXPECT_EQ(node->conditions[100].type, "HauloutMaintenance");
}

TEST(NodeCodec, P12_ConditionsOfAnyLengthAreKeptShort) {
  nlohmann::json json = {{"kind", "Node"}, {"metadata", {{"name", "n1"}, {"uid", "u"}, {"resourceVersion", "9"}}}};
  const std::string longest(1'000'000, 'x');
  json["status"]["conditions"] = {{{"type", "Drained"}, {"status", longest}, {"reason", longest}, {"message", longest}},
                                  {{"type", "NetworkReady"}, {"status", longest}, {"reason", longest}},
                                  {{"type", "DiskPressure"}, {"status", "true"}}};
  const auto node = decode<Node>(json.dump());
  ASSERT_TRUE(node) << node.error().message();
  EXPECT_THAT(node->conditions,
              ElementsAre(NodeCondition{"Drained", "", std::string(1024, 'x'), {}, std::string(1024, 'x')},
                          NodeCondition{"NetworkReady", ""}, NodeCondition{"DiskPressure", ""}));
  EXPECT_LT(Kind<Node>::text_in(*node), 3000u);
  EXPECT_GT(Kind<Node>::text_in(*node), 2048u) << "the message counts, too";
}

constexpr const char* bound_to_a_pod =
    R"({"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","metadata":{"creationTimestamp":"2026-11-21T01:00:00Z"},"status":{"userInfo":{"username":"system:serviceaccount:haulout:agent","uid":"a0dd","groups":["system:serviceaccounts","system:serviceaccounts:haulout","system:authenticated"],"extra":{"authentication.kubernetes.io/credential-id":["JTI=6863"],"authentication.kubernetes.io/node-name":["v1"],"authentication.kubernetes.io/node-uid":["0e61"],"authentication.kubernetes.io/pod-name":["agent1"],"authentication.kubernetes.io/pod-uid":["25a1"]}}}})";

TEST(SelfCodec, ReadsTheClaims) {
  const auto self = decode_self_review(bound_to_a_pod);
  ASSERT_TRUE(self) << self.error().message();
  EXPECT_EQ(*self, (Self{"system:serviceaccount:haulout:agent",
                         {"system:serviceaccounts", "system:serviceaccounts:haulout", "system:authenticated"},
                         "v1",
                         "0e61",
                         "agent1",
                         "25a1",
                         "JTI=6863"}));
}

TEST(SelfCodec, WithoutClaimsAndWithoutAName) {
  const auto kubelet = decode_self_review(
      R"({"kind":"SelfSubjectReview","status":{"userInfo":{"username":"system:node:k1","groups":["system:nodes"]}}})");
  ASSERT_TRUE(kubelet);
  EXPECT_EQ(*kubelet, (Self{"system:node:k1", {"system:nodes"}, "", "", "", ""}));
  const auto nobody = decode_self_review(R"({"kind":"SelfSubjectReview","status":{}})");
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code(), Errc::decode);
}

class AgentVerbsTest : public haulout::testing::VirtualTimeTest {
 protected:
  haulout::testing::ScriptedTransport transport{clock};
  Client client{transport, clock};
  const TimePoint soon = start + 60s;
  const http::Request& asked() { return transport.requests().back().request; }
};

TEST_F(AgentVerbsTest, AsksWhoItIs) {
  transport.answer(json_response(201, bound_to_a_pod));
  EXPECT_EQ(run(client.review_self(soon))->node_name, "v1");
  EXPECT_EQ(asked().target, "/apis/authentication.k8s.io/v1/selfsubjectreviews");
  EXPECT_EQ(asked().body, R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})");
}

TEST_F(AgentVerbsTest, WritesItsNodesStatus) {
  transport.answer(json_response(200, fixtures::node));
  EXPECT_EQ(run(client.patch_node_status("n1", "{}", soon))->name, "n1");
}

TEST_F(AgentVerbsTest, WritesEvents) {
  transport.answer(json_response(201, R"({"kind":"Event","metadata":{"name":"n1.17f0"}})"));
  transport.answer(json_response(200, R"({"kind":"Event","metadata":{"name":"n1.17f0"}})"));
  transport.answer(json_response(
      404, fixtures::failure(R"("message":"events.events.k8s.io \"x\" not found","reason":"NotFound","code":404)")));
  transport.answer(json_response(201, "{}"));
  EXPECT_TRUE(run(client.create_event(event(), soon)));
  EXPECT_TRUE(run(client.repeat_event("default", "n1.17f0", 2, WallTime(), soon)));
  EXPECT_TRUE(is_not_found(run(client.repeat_event("default", "x", 2, WallTime(), soon)).error()));
  EXPECT_FALSE(run(client.create_event(event(), soon))) << "a success that is no Event";
}

TEST_F(AgentVerbsTest, ReadsAConfigMap) {
  transport.answer(json_response(
      200, R"({"kind":"ConfigMap","metadata":{"name":"haulout","namespace":"ops","uid":"cu","resourceVersion":"4"},)"
           R"("data":{"pause":"{\"reason\":\"x\"}"},"binaryData":{"b":"AA=="}})"));
  const auto map = run(client.get<ConfigMap>("ops", "haulout", soon));
  ASSERT_TRUE(map) << map.error().message();
  EXPECT_EQ(map->resource_version, "4");
  EXPECT_THAT(map->data, ElementsAre(Pair("pause", R"({"reason":"x"})")));
  EXPECT_EQ(asked().target, "/api/v1/namespaces/ops/configmaps/haulout");
}

TEST_F(AgentVerbsTest, WritesAConfigMap) {
  const char* stored =
      R"({"kind":"ConfigMap","metadata":{"name":"haulout","namespace":"ops","uid":"cu","resourceVersion":"5"},)"
      R"("data":{"pause":"{}"}})";
  transport.answer(json_response(201, stored));
  ConfigMap made;
  made.ns = "ops";
  made.name = "haulout";
  made.data = {{"pause", "{}"}};
  const auto created = run(client.create<ConfigMap>(made, soon));
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_EQ(created->resource_version, "5");
  EXPECT_EQ(asked().method, "POST");
  EXPECT_THAT(asked().target, ::testing::StartsWith("/api/v1/namespaces/ops/configmaps?fieldManager=haulout"));
  EXPECT_EQ(asked().body, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"haulout","namespace":"ops"},)"
                          R"("data":{"pause":"{}"}})");

  transport.answer(json_response(200, stored));
  ASSERT_TRUE(run(client.patch<ConfigMap>("ops", "haulout", R"({"data":{"pause":null}})", soon)));
  EXPECT_EQ(asked().method, "PATCH");
  EXPECT_THAT(asked().target, ::testing::StartsWith("/api/v1/namespaces/ops/configmaps/haulout?fieldManager=haulout"));
  EXPECT_EQ(asked().headers.find("Content-Type"), "application/merge-patch+json");
  EXPECT_FALSE(asked().repeatable);
  EXPECT_DEATH(static_cast<void>(create<ConfigMap>({}, {})), "ConfigMap name");
}

}  // namespace
}  // namespace haulout::k8s
