#include <fmt/format.h>

#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

class PatchTest : public SimTest {
 protected:
  void SetUp() override { add_node("n3"); }
  boost::asio::awaitable<http::Response> patch(std::string body, std::string query = {},
                                               std::string type = "application/merge-patch+json") {
    return ask("PATCH", "/api/v1/nodes/n3" + query, body, type);
  }
  Json node() const { return cluster.get("nodes", "", "n3"); }
  std::string version() const { return sim::text(node(), "/metadata/resourceVersion"); }
};

TEST_F(PatchTest, OneWriteSetsFieldAndMark) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto before = cluster.revision();
    const auto response = co_await patch(
        fmt::format(R"({{"metadata":{{"resourceVersion":"{}","annotations":{{"haulout.dev/cordon":"x"}}}},)"
                    R"("spec":{{"unschedulable":true}}}})",
                    version()));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(cluster.revision(), before + 1);
    EXPECT_EQ(node()["metadata"]["managedFields"][0]["manager"], "haulout") << "the User-Agent up to the slash";
    // The taint is added 11 ms later by a separate change.
    EXPECT_FALSE(node()["spec"].contains("taints"));
    co_await pass(20ms);
    EXPECT_EQ(cluster.revision(), before + 2);
    EXPECT_EQ(node()["spec"]["taints"][0]["key"], "node.kubernetes.io/unschedulable");
    EXPECT_TRUE(node()["spec"]["taints"][0].contains("timeAdded"));

    cluster.uncordon("n3");
    co_await pass(20ms);
    EXPECT_FALSE(node()["spec"].contains("taints"));
    EXPECT_FALSE(node()["spec"].contains("unschedulable"));
    EXPECT_FALSE(node()["metadata"].contains("managedFields"));
    EXPECT_EQ(node()["metadata"]["annotations"]["haulout.dev/cordon"], "x") << "kubectl leaves marks alone";
  });
}

TEST_F(PatchTest, AStaleVersionConflictsAlsoWhenNothingWouldChange) {
  in_world([&]() -> boost::asio::awaitable<void> {
    for (const char* rest : {R"("spec":{"unschedulable":true})", R"("spec":{})"}) {
      const auto response = co_await patch(fmt::format(R"({{"metadata":{{"resourceVersion":"1"}},{}}})", rest));
      EXPECT_EQ(line(response),
                R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Operation cannot be )"
                R"(fulfilled on nodes \"n3\": the object has been modified; please apply your changes to the latest )"
                R"(version and try again","reason":"Conflict","details":{"name":"n3","kind":"nodes"},"code":409})");
    }
  });
}

TEST_F(PatchTest, NothingToDoIsNoWrite) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto before = cluster.revision();
    for (const char* body : {R"({"spec":{"unschedulable":null}})", R"({"spec":{"unschedulable":false}})"}) {
      const auto response = co_await patch(body);
      EXPECT_EQ(response.status, 200);
      EXPECT_EQ(sim::text(Json::parse(response.body), "/metadata/resourceVersion"), version());
    }
    EXPECT_EQ(cluster.revision(), before);
  });
}

TEST_F(PatchTest, DryRunAnswersWithTheResultAndWritesNothing) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto before = cluster.revision();
    const auto response = co_await patch(R"({"spec":{"unschedulable":true}})", "?dryRun=All");
    EXPECT_EQ(Json::parse(response.body)["spec"]["unschedulable"], true);
    EXPECT_EQ(cluster.revision(), before);
  });
}

struct PatchRow {
  const char* type;
  const char* body;
  const char* query;
  int status;
};

TEST_F(PatchTest, Refusals) {
  const PatchRow table[] = {
      {"application/merge-patch+json", R"({"metadata":{"uid":"0000"}})", "", 422},
      {"application/merge-patch+json", R"({"spec":{"unschedulabel":true}})", "?fieldValidation=Strict", 422},
      {"application/merge-patch+json", R"({"spec":)", "", 400},
      {"application/json-patch+json", R"([{"op":"test","path":"/metadata/name","value":"x"}])", "", 422},
      {"application/json-patch+json", R"({})", "", 400},
      {"application/json", R"({})", "", 415},
      {"application/strategic-merge-patch+json", R"({"spec":{"unschedulable":true}})", "", 200},
  };
  in_world([&]() -> boost::asio::awaitable<void> {
    for (const PatchRow& row : table) {
      const auto response = co_await patch(row.body, row.query, row.type);
      EXPECT_EQ(response.status, row.status) << row.body << response.body;
    }
    const auto warned = co_await patch(R"({"spec":{"unschedulabel":true}})");
    EXPECT_EQ(warned.status, 200);
    EXPECT_EQ(warned.headers.find("Warning"), R"(299 - "unknown field \"spec.unschedulabel\"")");
    const auto missing = co_await ask("PATCH", "/api/v1/nodes/none", "{}", "application/merge-patch+json");
    EXPECT_EQ(Json::parse(missing.body)["message"], R"(nodes "none" not found)");
  });
}

TEST_F(PatchTest, LeasesAsSlots) {
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
  cluster.create("namespaces", {{"metadata", {{"name", "default"}}}});
  in_world([&]() -> boost::asio::awaitable<void> {
    const std::string body = R"({"metadata":{"name":"slot"},"spec":{}})";
    EXPECT_EQ((co_await ask("POST", leases, body)).status, 201);
    const auto taken = co_await ask("POST", leases, body);
    EXPECT_EQ(taken.status, 409);
    EXPECT_EQ(Json::parse(taken.body)["reason"], "AlreadyExists");
    EXPECT_EQ(Json::parse(taken.body)["message"], R"(leases.coordination.k8s.io "slot" already exists)");
    const auto stale = co_await ask("DELETE", leases + "/slot", R"({"preconditions":{"resourceVersion":"1"}})");
    EXPECT_EQ(stale.status, 409);
    EXPECT_EQ(Json::parse(stale.body)["details"]["kind"], "Lease");
    EXPECT_EQ((co_await ask("DELETE", leases + "/slot")).status, 200);
    EXPECT_EQ((co_await ask("PUT", leases + "/slot", body)).status, 201) << "a PUT resurrects";
  });
}

}  // namespace
}  // namespace haulout::testing
