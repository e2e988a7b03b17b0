// Leases as slots: the answers of the API, and the behaviour of the garbage collector.
#include <fmt/format.h>

#include "k8s/reflector.hpp"
#include "k8s/status.hpp"
#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

class LeaseTest : public SimTest {
 protected:
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/haulout/leases";
  const std::string slot = leases + "/haulout-default-0";

  void SetUp() override {
    cluster.create("namespaces", {{"metadata", {{"name", "haulout"}}}});
    add_node("n1");
  }
  std::string node_uid(std::string name = "n1") const { return sim::uid_of(cluster.get("nodes", "", name)); }
  static Json lease(std::string owner_uid = {}, std::string name = "haulout-default-0") {
    Json result = {{"metadata", {{"name", name}, {"labels", {{"haulout.dev/pool", "default"}}}}},
                   {"spec", {{"holderIdentity", "n1/" + owner_uid}}}};
    if (!owner_uid.empty())
      result["metadata"]["ownerReferences"] =
          Json::array({{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "n1"}, {"uid", owner_uid}}});
    return result;
  }
  Json stored(std::string name = "haulout-default-0") const { return cluster.get("leases", "haulout", name); }
  std::string version() const { return sim::text(stored(), "/metadata/resourceVersion"); }
  bool there() const { return !stored().is_null(); }
  boost::asio::awaitable<http::Response> create(Json body, std::string query = {}) {
    return ask("POST", leases + query, body.dump());
  }
  boost::asio::awaitable<http::Response> patch(std::string body, std::string query = {}) {
    return ask("PATCH", slot + query, body, "application/merge-patch+json");
  }
  // Returns the time from now until the slot's Lease is deleted, or 10 s if it is not deleted by then.
  boost::asio::awaitable<Duration> gone_after() {
    const TimePoint from = clock.now();
    while (there() && clock.now() < from + 10s) co_await pass(1ms);
    co_return clock.now() - from;
  }
};

std::string failure(const std::string& tail) {
  return R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)" + tail + "}";
}

TEST_F(LeaseTest, TakenIsAlreadyExists) {
  in_world([&]() -> boost::asio::awaitable<void> {
    EXPECT_EQ((co_await create(lease())).status, 201);
    const auto taken = co_await create(lease());
    EXPECT_EQ(taken.status, 409);
    EXPECT_EQ(
        line(taken),
        failure(
            R"("message":"leases.coordination.k8s.io \"haulout-default-0\" already exists","reason":)"
            R"("AlreadyExists","details":{"name":"haulout-default-0","group":"coordination.k8s.io","kind":"leases"},)"
            R"("code":409)"));
    EXPECT_EQ((co_await create({{"metadata", {{"name", "bare"}}}, {"spec", Json::object()}})).status, 201);
  });
}

TEST_F(LeaseTest, OfEightRacersOneWins) {
  in_world([&]() -> boost::asio::awaitable<void> {
    std::multiset<int> statuses;
    co_await with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      for (int i = 0; i < 8; ++i)
        group.spawn([](auto* test, std::multiset<int>* into) -> boost::asio::awaitable<void> {
          into->insert((co_await test->create(lease())).status);
        }(this, &statuses));
      co_await group.join();
    });
    EXPECT_EQ(statuses.count(201), 1u);
    EXPECT_EQ(statuses.count(409), 7u);
  });
}

TEST_F(LeaseTest, AGuardedPatch) {
  in_world([&]() -> boost::asio::awaitable<void> {
    EXPECT_EQ((co_await patch("{}")).status, 404);
    co_await create(lease());
    const std::string old = version();
    const auto with_version = [](const std::string& guard) {
      return fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}},"spec":{{"holderIdentity":"n2/x"}}}})", guard);
    };
    EXPECT_EQ((co_await patch(with_version(old))).status, 200);
    EXPECT_EQ(sim::text(stored(), "/spec/holderIdentity"), "n2/x");
    const auto stale = co_await patch(with_version(old));
    EXPECT_EQ(stale.status, 409);
    EXPECT_EQ(
        line(stale),
        failure(R"("message":"Operation cannot be fulfilled on leases.coordination.k8s.io \"haulout-default-0\": the )"
                R"(object has been modified; please apply your changes to the latest version and try again",)"
                R"("reason":"Conflict","details":{"name":"haulout-default-0","group":"coordination.k8s.io",)"
                R"("kind":"leases"},"code":409)"));
    EXPECT_EQ((co_await patch(R"({"spec":{"holderIdentity":""}})")).status, 200);
    EXPECT_EQ(stored()["spec"]["holderIdentity"], "");
  });
}

TEST_F(LeaseTest, ADeletionWithPreconditions) {
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await create(lease());
    const std::string uid = sim::uid_of(stored()), old = version();
    const auto conditions = [&](const std::string& of_uid, const std::string& of_version) {
      return Json{{"preconditions", {{"uid", of_uid}, {"resourceVersion", of_version}}}}.dump();
    };
    co_await patch(R"({"spec":{"holderIdentity":"n2/x"}})");
    const auto stale = co_await ask("DELETE", slot, conditions(uid, old));
    EXPECT_EQ(stale.status, 409);
    EXPECT_EQ(
        sim::text(Json::parse(stale.body), "/message"),
        fmt::format("Operation cannot be fulfilled on Lease.coordination.k8s.io \"haulout-default-0\": the "
                    "ResourceVersion in the precondition ({}) does not match the ResourceVersion in record ({}). The "
                    "object might have been modified",
                    old, version()));
    EXPECT_EQ(sim::text(Json::parse(stale.body), "/details/kind"), "Lease");
    EXPECT_EQ((co_await ask("DELETE", slot, conditions("other", version()))).status, 409);
    const auto done = co_await ask("DELETE", slot, conditions(uid, version()));
    EXPECT_EQ(done.status, 200);
    EXPECT_EQ(line(done), R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":)"
                          R"("haulout-default-0","group":"coordination.k8s.io","kind":"leases","uid":")" +
                              uid + R"("}})");
    EXPECT_FALSE(there());
  });
}

TEST_F(LeaseTest, PutResurrectsAndAsksForAVersion) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Json body = lease();
    body["metadata"]["resourceVersion"] = "7";
    EXPECT_EQ((co_await ask("PUT", slot, body.dump())).status, 201);
    const auto stale = co_await ask("PUT", slot, body.dump());
    EXPECT_EQ(stale.status, 409);
    const auto unguarded = co_await ask("PUT", slot, lease().dump());
    EXPECT_EQ(unguarded.status, 422);
    EXPECT_NE(unguarded.body.find("metadata.resourceVersion: Invalid value: 0: must be specified for an update"),
              std::string::npos);
    body["metadata"]["resourceVersion"] = version();
    EXPECT_EQ((co_await ask("PUT", slot, body.dump())).status, 200);
  });
}

struct RefusedRow {
  const char* what;
  const char* patch;  // merged into a Lease that the server accepts
  const char* query;
  int created;
  int patched;
};

TEST_F(LeaseTest, Refusals) {
  const RefusedRow table[] = {
      {"a time in whole seconds", R"({"spec":{"renewTime":"2026-11-21T01:00:00Z"}})", "", 400, 422},
      {"a time in milliseconds", R"({"spec":{"acquireTime":"2026-11-21T01:00:00.123Z"}})", "", 400, 422},
      {"a time of seven digits", R"({"spec":{"acquireTime":"2026-11-21T01:00:00.1234567Z"}})", "", 400, 422},
      {"a MicroTime", R"({"spec":{"renewTime":"2026-11-21T01:00:00.000000Z"}})", "", 201, 200},
      {"no duration", R"({"spec":{"leaseDurationSeconds":0}})", "", 422, 422},
      {"a label with a blank", R"({"metadata":{"labels":{"pool":"a b"}}})", "", 422, 422},
      {"a label that ends in a dash", R"({"metadata":{"labels":{"pool":"a-"}}})", "", 422, 422},
      {"a label of 64",
       R"({"metadata":{"labels":{"pool":"0123456789012345678901234567890123456789012345678901234567890123"}}})", "",
       422, 422},
      {"an owner without UID", R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1"}]}})",
       "", 422, 422},
      {"a misspelt field", R"({"spec":{"holder":"x"}})", "?fieldValidation=Strict", 400, 422},
      {"a misspelt field of an owner",
       R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1","uid":"u","id":"u"}]}})",
       "?fieldValidation=Strict", 400, 422},
  };
  in_world([&]() -> boost::asio::awaitable<void> {
    for (const RefusedRow& row : table) {
      cluster.remove("leases", "haulout", "haulout-default-0");
      Json body = lease();
      body.merge_patch(Json::parse(row.patch));
      EXPECT_EQ((co_await create(body, row.query)).status, row.created) << row.what;
      cluster.remove("leases", "haulout", "haulout-default-0");
      co_await create(lease());
      EXPECT_EQ((co_await patch(row.patch, row.query)).status, row.patched) << row.what;
    }
  });
}

TEST_F(LeaseTest, MessagesOfRefusals) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Json body = lease();
    body["spec"]["renewTime"] = "2026-11-21T01:00:00Z";
    EXPECT_NE((co_await create(body)).body.find(R"(cannot parse \"Z\" as \".000000\")"), std::string::npos);
    body = lease();
    body["spec"]["holder"] = "x";
    EXPECT_EQ(
        sim::text(Json::parse((co_await create(body, "?fieldValidation=Strict")).body), "/message"),
        R"(Lease in version "v1" cannot be handled as a Lease: strict decoding error: unknown field "spec.holder")");
    const auto warned = co_await create(body);
    EXPECT_EQ(warned.status, 201);
    EXPECT_EQ(warned.headers.find("Warning"), R"(299 - "unknown field \"spec.holder\"")");
  });
}

TEST_F(LeaseTest, ItGoesWithItsNode) {
  in_world([&]() -> boost::asio::awaitable<void> {
    std::set<Duration> lags;
    for (int i = 0; i < 5; ++i) {
      co_await create(lease(node_uid()));
      co_await pass(5s);
      EXPECT_TRUE(there()) << "nothing ends a turn but its Node";
      cluster.remove("nodes", "", "n1");
      const Duration lag = co_await gone_after();
      EXPECT_GE(lag, 15ms);
      EXPECT_LE(lag, 131ms);
      lags.insert(lag);
      add_node("n1");
    }
    EXPECT_GT(lags.size(), 1u);
  });
}

TEST_F(LeaseTest, TheUidDecidesNotTheName) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const std::string old = node_uid();
    co_await create(lease(old));
    cluster.replace_node("n1");
    EXPECT_NE(node_uid(), old);
    EXPECT_LE(co_await gone_after(), 131ms);
    // A holder that has not noticed the replacement creates the Lease again. The garbage collector deletes it.
    EXPECT_EQ((co_await create(lease(old))).status, 201);
    const Duration lag = co_await gone_after();
    EXPECT_GE(lag, 8ms) << "the answer was under way meanwhile";
    EXPECT_LE(lag, 41ms);
    co_await create(lease(node_uid()));
    co_await pass(5s);
    EXPECT_TRUE(there());
  });
}

TEST_F(LeaseTest, OneLivingOwnerIsEnoughAndOrphansStay) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Json two = lease(node_uid());
    two["metadata"]["ownerReferences"].push_back(
        {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "n2"}, {"uid", "never"}});
    co_await create(two);
    co_await create(lease("", "orphan"));
    co_await create(lease(node_uid(), "later"));
    co_await pass(1s);
    EXPECT_TRUE(there());
    // A Lease whose owner reference is removed before its Node is deleted remains.
    cluster.patch("leases", "haulout", "later", {{"metadata", {{"ownerReferences", nullptr}}}});
    cluster.remove("nodes", "", "n1");
    co_await pass(1s);
    EXPECT_FALSE(there());
    EXPECT_FALSE(stored("orphan").is_null());
    EXPECT_FALSE(stored("later").is_null());
  });
}

TEST_F(LeaseTest, WithoutItsCollectorASlotStaysTaken) {
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await create(lease(node_uid()));
    cluster.stop_garbage_collector();
    cluster.remove("nodes", "", "n1");
    co_await pass(10s);
    EXPECT_TRUE(there());
    cluster.start_garbage_collector();
    EXPECT_LE(co_await gone_after(), 131ms);
  });
}

TEST_F(LeaseTest, TheClientsVerbs) {
  in_world([&]() -> boost::asio::awaitable<void> {
    k8s::Client client(cluster.api(), clock, {k8s::FieldValidation::strict, 2});
    const TimePoint soon = clock.now() + 60s;
    k8s::Lease mine;
    mine.ns = "haulout";
    mine.name = "haulout-default-0";
    mine.labels = {{"haulout.dev/pool", "default"}};
    mine.holder = "n1/" + node_uid();
    mine.acquire_time = mine.renew_time = clock.wall_now();
    mine.owner = k8s::OwnerReference{"v1", "Node", "n1", node_uid(), false};
    mine.owners = 1;
    const auto created = co_await client.create<k8s::Lease>(mine, soon);
    EXPECT_TRUE(created) << created.error().message();
    if (!created) co_return;
    mine.uid = created->uid;
    mine.resource_version = created->resource_version;
    EXPECT_EQ(*created, mine);
    const auto again = co_await client.create<k8s::Lease>(mine, soon);
    EXPECT_TRUE(!again && k8s::is_already_exists(again.error()));

    const auto patched =
        co_await client.patch<k8s::Lease>("haulout", mine.name, R"({"spec":{"holderIdentity":"x"}})", soon);
    EXPECT_TRUE(patched && patched->holder == "x");
    const auto stale =
        co_await client.remove<k8s::Lease>("haulout", mine.name, {mine.uid, {}, {}, mine.resource_version}, soon);
    EXPECT_TRUE(!stale && k8s::is_conflict(stale.error()));
    const auto here = co_await client.get<k8s::Lease>("haulout", mine.name, soon);
    EXPECT_TRUE(here && here->holder == "x");
    for (const char* name : {"haulout-default-1", "haulout-default-2"}) co_await create(lease("", name));
    co_await create({{"metadata", {{"name", "other"}}}, {"spec", Json::object()}});
    const auto pool = co_await client.list<k8s::Lease>(
        {.label_selector = "haulout.dev/pool=default", .limit = k8s::usual_page, .ns = "haulout"}, soon);
    EXPECT_EQ(pool->items.size(), 3u);
    EXPECT_TRUE(
        co_await client.remove<k8s::Lease>("haulout", mine.name, {here->uid, {}, {}, here->resource_version}, soon));
    const auto gone = co_await client.get<k8s::Lease>("haulout", mine.name, soon);
    EXPECT_TRUE(!gone && k8s::is_not_found(gone.error()));
  });
}

boost::asio::awaitable<void> follow(k8s::Reflector<k8s::Lease>& reflector) {
  [[maybe_unused]] const auto ended = co_await reflector.run();
}

TEST_F(LeaseTest, AReflectorSeesOnePoolOfOneNamespace) {
  cluster.create("leases", {{"metadata", {{"name", "elsewhere"}, {"labels", {{"haulout.dev/pool", "default"}}}}}});
  k8s::Client client(cluster.api(), clock);
  std::vector<std::string> changes;
  k8s::ReflectorOptions options;
  options.ns = "haulout";
  options.label_selector = "haulout.dev/pool=default";
  k8s::Reflector<k8s::Lease> reflector(
      client, rng, options,
      [&](const std::string&, const k8s::Lease* seen) { changes.push_back(seen ? seen->name : "gone"); }, [] {});
  run(with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn(cluster.run());
    co_await create(lease(node_uid()));
    co_await create({{"metadata", {{"name", "unlabelled"}}}, {"spec", Json::object()}});
    group.spawn(follow(reflector));
    co_await pass(1s);
    EXPECT_TRUE(reflector.health().connected);
    co_await create(lease("", "haulout-default-1"));
    cluster.remove("nodes", "", "n1");
    co_await pass(1s);
    EXPECT_EQ(changes, (std::vector<std::string>{"haulout-default-0", "haulout-default-1", "gone"}));
    // The reflector understands bookmarks of a Lease.
    co_await pass(90s);
    EXPECT_EQ(reflector.health().reconnects, 0u);
    EXPECT_EQ(reflector.objects().size(), 1u);
    group.cancel();
  }));
}

}  // namespace
}  // namespace haulout::testing
