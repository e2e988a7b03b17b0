// The API that the agent uses besides Leases: its own identity, its Node's status, Events, ConfigMaps.
#include "k8s/client.hpp"
#include "k8s/status.hpp"
#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

class AgentApiTest : public SimTest {
 protected:
  const std::string events = "/apis/events.k8s.io/v1/namespaces/default/events";

  void SetUp() override {
    cluster.create("namespaces", {{"metadata", {{"name", "default"}}}});
    add_node("n1");
  }
  Json node() const { return cluster.get("nodes", "", "n1"); }
  TimePoint soon() const { return clock.now() + 60s; }
};

TEST_F(AgentApiTest, WhoAmI) {
  sim::Identity agent = sim::service_account("haulout", "agent");
  agent.uid = "a0dd";
  agent.node_name = "n1";
  agent.node_uid = "0e61";
  agent.pod_name = "agent1";
  agent.pod_uid = "25a1";
  agent.credential_id = "JTI=6863";
  cluster.set_token("secret", agent);
  sim::TokenTransport as_agent(cluster.api(), "secret");
  sim::TokenTransport as_nobody(cluster.api(), "unheard of");
  in_world([&]() -> boost::asio::awaitable<void> {
    k8s::Client client(as_agent, clock);
    const auto self = co_await client.review_self(soon());
    EXPECT_TRUE(self) << self.error().message();
    if (!self) co_return;
    EXPECT_EQ(*self, (k8s::Self{"system:serviceaccount:haulout:agent",
                                {"system:serviceaccounts", "system:serviceaccounts:haulout", "system:authenticated"},
                                "n1",
                                "0e61",
                                "agent1",
                                "25a1",
                                "JTI=6863"}));
    k8s::Client anybody(cluster.api(), clock), nobody(as_nobody, clock);
    for (k8s::Client* one : {&anybody, &nobody}) {
      const auto other = co_await one->review_self(soon());
      EXPECT_EQ(other->username, "haulout");
      EXPECT_EQ(other->node_name, "");
    }
    EXPECT_EQ(cluster.audit().front().user, "system:serviceaccount:haulout:agent");
    EXPECT_EQ(cluster.audit().back().user, "haulout");

    cluster.forbid("get", "nodes");
    const auto denied = co_await client.get_node("n1", soon());
    EXPECT_TRUE(!denied && k8s::is_denied_by_rbac(denied.error()));
    EXPECT_NE(denied.error().message().find("User \"system:serviceaccount:haulout:agent\" cannot get"),
              std::string::npos);
    // The agent's pod is deleted, so its token is invalid.
    cluster.set_token("secret", std::nullopt);
    const auto expired = co_await client.review_self(soon());
    EXPECT_TRUE(!expired && k8s::is_unauthorized(expired.error()));
  });
}

TEST_F(AgentApiTest, TheStatusOfANode) {
  in_world([&]() -> boost::asio::awaitable<void> {
    k8s::Client client(cluster.api(), clock, {k8s::FieldValidation::strict, 500});
    const auto set = co_await client.patch_node_status(
        "n1",
        R"({"metadata":{"labels":{"haulout.dev/state":"draining"},"annotations":{"haulout.dev/message":"x"}},)"
        R"("spec":{"unschedulable":true},"status":{"conditions":[{"type":"Drained","status":"True",)"
        R"("reason":"Draining","message":"m","lastTransitionTime":"2026-11-21T01:00:00Z"}]}})",
        soon());
    EXPECT_TRUE(set) << set.error().message();
    if (!set) co_return;
    EXPECT_EQ(set->conditions,
              (std::vector<k8s::NodeCondition>{{"Ready", "True"}, {"Drained", "True", "Draining", {}, "m"}}))
        << "other conditions stay";
    EXPECT_FALSE(set->unschedulable) << "the spec of the patch is ignored";
    EXPECT_EQ(set->labels.at("haulout.dev/state"), "draining");
    EXPECT_EQ(set->annotations.at("haulout.dev/message"), "x");

    const auto changed = co_await client.patch_node_status(
        "n1", R"({"status":{"conditions":[{"type":"Drained","reason":"Rebooting"}]}})", soon());
    EXPECT_EQ(changed->conditions,
              (std::vector<k8s::NodeCondition>{{"Ready", "True"}, {"Drained", "True", "Rebooting", {}, "m"}}));
    const auto removed = co_await client.patch_node_status(
        "n1", R"({"status":{"conditions":[{"$patch":"delete","type":"Drained"}]}})", soon());
    EXPECT_EQ(removed->conditions, (std::vector<k8s::NodeCondition>{{"Ready", "True"}}));

    const auto guarded = co_await client.patch_node_status(
        "n1", R"({"metadata":{"resourceVersion":"1"},"status":{"conditions":[]}})", soon());
    EXPECT_TRUE(!guarded && k8s::is_conflict(guarded.error()));
    const auto misspelt = co_await client.patch_node_status(
        "n1", R"({"status":{"conditions":[{"type":"Drained","state":"True"}]}})", soon());
    EXPECT_TRUE(!misspelt && misspelt.error().is_status(422));
    EXPECT_NE(misspelt.error().message().find(R"(unknown field "status.conditions[0].state")"), std::string::npos);
    // A patch of the main resource ignores `status`.
    EXPECT_TRUE(co_await client.patch_node("n1", R"({"status":{"conditions":null}})", k8s::DryRun::none, soon()));
    EXPECT_EQ(sim::text(sim::condition(node(), "Ready"), "/status"), "True");
    const auto missing = co_await client.patch_node_status("none", "{}", soon());
    EXPECT_TRUE(!missing && k8s::is_not_found(missing.error()));
  });
}

k8s::NodeEvent event() {
  k8s::NodeEvent out;
  out.name = "n1.abc";
  out.node = "n1";
  out.node_uid = "nu";
  out.reason = "Draining";
  out.action = "Drain";
  out.note = std::string(1500, 'x') + "é";
  out.reporting_controller = "haulout.dev/agent";
  out.reporting_instance = std::string(300, 'i');
  return out;
}

TEST_F(AgentApiTest, EventsAreWrittenRepeatedAndExpire) {
  in_world([&]() -> boost::asio::awaitable<void> {
    k8s::Client client(cluster.api(), clock, {k8s::FieldValidation::strict, 500});
    auto one = event();
    one.event_time = clock.wall_now();
    const auto written = co_await client.create_event(one, soon());
    EXPECT_TRUE(written) << written.error().message();
    const auto again = co_await client.create_event(one, soon());
    EXPECT_TRUE(!again && k8s::is_already_exists(again.error()));
    EXPECT_EQ(again.error().peer->message, R"(events.events.k8s.io "n1.abc" already exists)");
    EXPECT_FALSE(co_await client.repeat_event("default", "n1.abc", 1, clock.wall_now(), soon())) << "at least 2";
    co_await pass(40min);
    EXPECT_TRUE(co_await client.repeat_event("default", "n1.abc", 3, clock.wall_now(), soon()));
    EXPECT_EQ(cluster.get("events", "default", "n1.abc")["series"]["count"], 3);
    co_await pass(59min);
    EXPECT_FALSE(cluster.get("events", "default", "n1.abc").is_null()) << "a write lets it live anew";
    co_await pass(2min);
    const auto expired = co_await client.repeat_event("default", "n1.abc", 4, clock.wall_now(), soon());
    EXPECT_TRUE(!expired && k8s::is_not_found(expired.error()));
  });
}

struct EventRow {
  const char* change;  // merged into an Event that the server accepts
  int status;
  const char* message;
};

TEST_F(AgentApiTest, WhatAnEventMustHave) {
  const std::string long_note = R"({"note":")" + std::string(1025, 'x') + R"("})";
  const std::string long_reason = R"({"reason":")" + std::string(129, 'x') + R"("})";
  const EventRow table[] = {
      {"{}", 201, ""},
      {R"({"note":null,"regarding":null})", 201, ""},
      {R"({"eventTime":null})", 422, R"(Event "x" is invalid: eventTime: Required value)"},
      {R"({"reportingController":null})", 422, R"(Event "x" is invalid: reportingController: Required value)"},
      {R"({"reportingInstance":null})", 422, R"(Event "x" is invalid: reportingInstance: Required value)"},
      {R"({"action":null})", 422, R"(Event "x" is invalid: action: Required value)"},
      {R"({"reason":null})", 422, R"(Event "x" is invalid: reason: Required value)"},
      {long_note.c_str(), 422, R"(Event "x" is invalid: message: Invalid value: "": can have at most 1024 characters)"},
      {long_reason.c_str(), 422, R"(Event "x" is invalid: reason: Invalid value: "": can have at most 128 characters)"},
      {R"({"deprecatedCount":2})", 422, R"(Event "x" is invalid: count: Invalid value: "": needs to be unset)"},
      {R"({"type":"Severe"})", 422, R"(Event "x" is invalid: type: Invalid value: "": has invalid value: Severe)"},
      {R"({"eventTime":"2026-11-21T01:00:00Z"})", 400,
       R"(Event in version "v1" cannot be handled as a Event: parsing time "2026-11-21T01:00:00Z" as )"
       R"("2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000")"},
      {R"({"message":"x"})", 400,
       R"(Event in version "v1" cannot be handled as a Event: strict decoding error: unknown field "message")"},
  };
  in_world([&]() -> boost::asio::awaitable<void> {
    for (const EventRow& row : table) {
      cluster.remove("events", "default", "x");
      Json body = Json::parse(
          R"({"metadata":{"name":"x"},"eventTime":"2026-11-21T01:00:00.000000Z","reportingController":"haulout",)"
          R"("reportingInstance":"i","action":"Drain","reason":"Draining","type":"Normal","note":"n",)"
          R"("regarding":{"kind":"Node","name":"n1","uid":"u"}})");
      body.merge_patch(Json::parse(row.change));
      const auto response = co_await ask("POST", events + "?fieldValidation=Strict", body.dump());
      EXPECT_EQ(response.status, row.status) << row.change;
      if (row.status != 201) EXPECT_EQ(sim::text(Json::parse(response.body), "/message"), row.message);
    }
    const auto changed = [&](const char* patch) {
      return ask("PATCH", events + "/x", patch, "application/merge-patch+json");
    };
    cluster.create("events", Json::parse(R"({"metadata":{"name":"x"},"note":"n"})"));
    EXPECT_EQ(sim::text(Json::parse((co_await changed(R"({"note":"other"})")).body), "/message"),
              R"(Event "x" is invalid: message: Invalid value: "other": field is immutable)");
    EXPECT_EQ((co_await changed(R"({"series":{"count":1,"lastObservedTime":"2026-11-21T01:00:00.000000Z"}})")).status,
              422);
    EXPECT_EQ((co_await changed(R"({"series":{"count":2,"lastObservedTime":"2026-11-21T01:00:00.000000Z"}})")).status,
              200);
  });
}

TEST_F(AgentApiTest, ConfigMapsAreReadAsTheyAre) {
  in_world([&]() -> boost::asio::awaitable<void> {
    k8s::Client client(cluster.api(), clock);
    const auto missing = co_await client.get<k8s::ConfigMap>("default", "haulout", soon());
    EXPECT_TRUE(!missing && k8s::is_not_found(missing.error()));
    const auto loaded = cluster.load(R"(
apiVersion: v1
kind: ConfigMap
metadata: {name: haulout, namespace: default}
data:
  pause: '{"reason":"release day"}'
)");
    EXPECT_TRUE(loaded);
    const auto read = co_await client.get<k8s::ConfigMap>("default", "haulout", soon());
    EXPECT_EQ(read->data.at("pause"), R"({"reason":"release day"})");
    cluster.patch("configmaps", "default", "haulout", {{"data", {{"pause", nullptr}, {"pause.web", "{}"}}}});
    const auto later = co_await client.get<k8s::ConfigMap>("default", "haulout", soon());
    EXPECT_EQ(later->data, (std::map<std::string, std::string>{{"pause.web", "{}"}}));
    EXPECT_NE(later->resource_version, read->resource_version);
  });
}

}  // namespace
}  // namespace haulout::testing
