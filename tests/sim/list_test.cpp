// Lists: resourceVersion, pages, selectors.
#include <fmt/format.h>

#include "sim/lists.hpp"
#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

class ListTest : public SimTest {
 protected:
  void SetUp() override {
    add_node("n1");
    cluster.create("pods", ready_pod("shop", "a", "n1"));
  }
};

TEST_F(ListTest, ListsCarryTheRevisionAndBareItems) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto response = co_await ask("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1");
    const Json list = Json::parse(response.body);
    EXPECT_EQ(list["kind"], "PodList");
    EXPECT_EQ(list["metadata"]["resourceVersion"], std::to_string(cluster.revision()));
    EXPECT_EQ(list["items"].size(), 1u);
    EXPECT_FALSE(list["items"][0].contains("kind"));
    EXPECT_FALSE(list["items"][0].contains("apiVersion"));
    const auto other = co_await ask("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2");
    EXPECT_TRUE(Json::parse(other.body)["items"].empty());
  });
}

TEST(UsedNamespacesTest, KnowWhetherOneBeginsWithAnotherOne) {
  sim::UsedNamespaces used;
  const auto note = [&used](sim::ChangeType type, const std::string& ns) {
    sim::Change change{};
    change.type = type;
    change.key.ns = ns;
    used.note(change);
  };
  using enum sim::ChangeType;
  for (const char* ns : {"", "shop", "db", "dc", "shop"}) note(added, ns);
  EXPECT_FALSE(used.are_nested());
  for (const char* ns : {"shop-a", "shop-b"}) note(added, ns);
  EXPECT_TRUE(used.are_nested());
  note(deleted, "shop");
  note(modified, "shop");
  EXPECT_TRUE(used.are_nested()) << "one object is left";
  note(deleted, "shop");
  EXPECT_FALSE(used.are_nested());
  note(added, "shop-a.x");
  EXPECT_TRUE(used.are_nested());
}

TEST_F(ListTest, PagesAreOneSnapshot) {
  for (int i = 0; i < 5; ++i) cluster.create("pods", ready_pod(i % 2 ? "shop" : "shop-b", fmt::format("p{}", i), "n1"));
  in_world([&]() -> boost::asio::awaitable<void> {
    std::set<std::string> seen;
    std::string token, revision;
    int pages = 0;
    do {
      std::string target = "/api/v1/pods?limit=2&fieldSelector=spec.nodeName%3Dn1";
      if (!token.empty()) target += "&continue=" + token;
      const auto response = co_await ask("GET", target);
      const Json list = Json::parse(response.body);
      EXPECT_FALSE(list["metadata"].contains("remainingItemCount"));
      if (revision.empty()) revision = sim::text(list, "/metadata/resourceVersion");
      EXPECT_EQ(sim::text(list, "/metadata/resourceVersion"), revision);
      for (const Json& item : list["items"]) EXPECT_TRUE(seen.insert(sim::name_of(item)).second);
      token = sim::text(list, "/metadata/continue");
      cluster.create("pods", ready_pod("shop", fmt::format("late{}", ++pages), "n1"));
    } while (!token.empty());
    EXPECT_EQ(seen.size(), 6u);
    EXPECT_EQ(pages, 3);
  });
}

TEST_F(ListTest, ALostTokenOffersTheInconsistentRest) {
  for (int i = 0; i < 3; ++i) cluster.create("pods", ready_pod("shop", fmt::format("p{}", i), "n1"));
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto first = co_await ask("GET", "/api/v1/pods?limit=2");
    EXPECT_EQ(Json::parse(first.body)["metadata"]["remainingItemCount"], 2);
    cluster.expire_continue_tokens();
    const auto lost = co_await ask(
        "GET", "/api/v1/pods?limit=2&continue=" + sim::text(Json::parse(first.body), "/metadata/continue"));
    EXPECT_EQ(lost.status, 410);
    const Json status = Json::parse(lost.body);
    EXPECT_EQ(status["reason"], "Expired");
    const auto rest = co_await ask("GET", "/api/v1/pods?limit=2&continue=" + sim::text(status, "/metadata/continue"));
    EXPECT_EQ(rest.status, 200);
    EXPECT_EQ(Json::parse(rest.body)["items"].size(), 2u);
    const auto garbage = co_await ask("GET", "/api/v1/pods?limit=2&continue=abc");
    EXPECT_EQ(garbage.status, 400);
  });
}

TEST_F(ListTest, ACacheThatIsBehindAnswersOnlyThoseWhoTakeAnything) {
  cluster.lag_cache(10s);
  cluster.remove("pods", "shop", "a");
  cluster.create("pods", ready_pod("shop", "b", "n1"));
  in_world([&]() -> boost::asio::awaitable<void> {
    const std::string target = "/api/v1/namespaces/shop/pods?fieldSelector=spec.nodeName%3Dn1";
    const auto listed = [&](const std::string& more) -> boost::asio::awaitable<std::string> {
      const Json list = Json::parse((co_await ask("GET", target + more)).body);
      std::string names =
          sim::text(list, "/metadata/resourceVersion") == std::to_string(cluster.revision()) ? "" : "old:";
      for (const Json& item : list["items"]) names += sim::name_of(item);
      co_return names;
    };
    EXPECT_EQ(co_await listed("&resourceVersion=0&limit=500"), "old:a");
    EXPECT_EQ(co_await listed(""), "b");
    co_await clock.sleep_until(clock.now() + 10s);
    EXPECT_EQ(co_await listed("&resourceVersion=0"), "b") << "it has caught up";
  });
}

TEST_F(ListTest, ListFromTheFutureTimesOutAfterThreeSeconds) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto response = co_await ask("GET", "/api/v1/pods?resourceVersion=100492");
    EXPECT_EQ(
        line(response),
        fmt::format(R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"Timeout: )"
                    R"(Too large resource version: 100492, current: {}","reason":"Timeout","details":{{"causes":)"
                    R"([{{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}}],)"
                    R"("retryAfterSeconds":1}},"code":504}})",
                    cluster.revision()));
    EXPECT_EQ(response.headers.find("Retry-After"), "1");
    EXPECT_GE(elapsed(), 3s);
  });
}

struct BadSelector {
  const char* target;
  const char* message;
};

TEST_F(ListTest, SelectorsThatTheServerDoesNotKnow) {
  const BadSelector table[] = {
      {"/api/v1/pods?fieldSelector=spec.foo%3Dx", "field label not supported: spec.foo"},
      {"/apis/coordination.k8s.io/v1/leases?fieldSelector=spec.nodeName%3Dx",
       R"("spec.nodeName" is not a known field selector: only "metadata.name", "metadata.namespace")"},
  };
  in_world([&]() -> boost::asio::awaitable<void> {
    for (const BadSelector& row : table) {
      const auto response = co_await ask("GET", row.target);
      EXPECT_EQ(response.status, 400);
      EXPECT_EQ(Json::parse(response.body)["message"], row.message);
    }
  });
}

}  // namespace
}  // namespace haulout::testing
