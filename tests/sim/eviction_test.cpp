#include <fmt/format.h>

#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

constexpr const char* evicted = R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201})";

class EvictionTest : public SimTest {
 protected:
  void SetUp() override {
    add_node("n1");
    cluster.create("pods", ready_pod("shop", "a", "n1"));
  }
};

TEST_F(EvictionTest, SuccessAndRepetitionAnswerTheSame) {
  in_world([&]() -> boost::asio::awaitable<void> {
    for (int i = 0; i < 2; ++i) {
      const auto response = co_await evict("shop", "a");
      EXPECT_EQ(response.status, 201);
      EXPECT_EQ(line(response), evicted);
    }
    EXPECT_EQ(sim::number(cluster.get("pods", "shop", "a"), "/metadata/deletionGracePeriodSeconds"), 30);
  });
}

TEST_F(EvictionTest, DryRunChangesNothing) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto before = cluster.revision();
    const Json options = {{"dryRun", {"All"}}};
    const auto by_body = co_await evict("shop", "a", options);
    const auto by_query = co_await evict("shop", "a", Json::object(), "?dryRun=All");
    EXPECT_EQ(by_body.status, 201);
    EXPECT_EQ(by_query.status, 201);
    EXPECT_EQ(cluster.revision(), before);
    EXPECT_FALSE(cluster.audit().back().applied);
  });
}

TEST_F(EvictionTest, MissingPodAndNamespace) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto missing = co_await evict("shop", "missing");
    EXPECT_EQ(line(missing),
              R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"missing\" not )"
              R"(found","reason":"NotFound","details":{"name":"missing","kind":"pods"},"code":404})");
    const auto nowhere = co_await evict("nonamespace", "a");
    EXPECT_EQ(line(nowhere),
              R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"namespaces )"
              R"(\"nonamespace\" not found","reason":"NotFound","details":{"name":"nonamespace","kind":"namespaces"},)"
              R"("code":404})");
  });
}

TEST_F(EvictionTest, TerminatingNamespaceForbids) {
  in_world([&]() -> boost::asio::awaitable<void> {
    cluster.timing().namespace_lag = 10s;
    cluster.terminate_namespace("shop");
    const auto response = co_await evict("shop", "a");
    EXPECT_EQ(
        line(response),
        R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"a\" is forbidden: )"
        R"(unable to create new content in namespace shop because it is being terminated","reason":"Forbidden",)"
        R"("details":{"name":"a","kind":"pods","causes":[{"reason":"NamespaceTerminating","message":"namespace shop )"
        R"(is being terminated","field":"metadata.namespace"}]},"code":403})");
  });
}

TEST_F(EvictionTest, UidMismatchOfAReadyPodConflictsAtOnce) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const Json options = {{"preconditions", {{"uid", "0000"}}}};
    const auto response = co_await evict("shop", "a", options);
    EXPECT_EQ(line(response),
              R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Operation cannot be )"
              R"(fulfilled on Pod \"a\": the UID in the precondition (0000) does not match the UID in record ()" +
                  uid("shop", "a") +
                  R"(). The object might have been deleted and then recreated","reason":"Conflict",)"
                  R"("details":{"name":"a","kind":"Pod"},"code":409})");
    EXPECT_LT(elapsed(), 20ms);
  });
}

TEST_F(EvictionTest, UidMismatchTakesTenSecondsWhereTheServerRetries) {
  for (const char* phase : {"Pending", "Succeeded", "Failed"}) {
    Json other = pod("shop", phase, "n1");
    other["metadata"]["annotations"]["sim.haulout.dev/starts-after"] = "1h";
    other["status"]["phase"] = phase;
    cluster.create("pods", other);
  }
  in_world([&]() -> boost::asio::awaitable<void> {
    for (const char* name : {"Pending", "Succeeded", "Failed", "a"}) {
      if (std::string_view(name) == "a") cluster.delete_gracefully("pods", "shop", "a");  // makes the pod terminating
      Json options = {{"preconditions", {{"uid", "0000"}}}};
      const TimePoint asked = clock.now();
      const auto slow = co_await evict("shop", name, options);
      EXPECT_EQ(slow.status, 409) << name;
      EXPECT_GT(clock.now() - asked, 9s) << name;
      EXPECT_LT(clock.now() - asked, 11s) << name;
      options["preconditions"]["resourceVersion"] = "1";
      const TimePoint again = clock.now();
      const auto fast = co_await evict("shop", name, options);
      EXPECT_EQ(fast.status, 409) << name;
      EXPECT_LT(clock.now() - again, 20ms) << name;
    }
  });
}

TEST_F(EvictionTest, ResourceVersionPrecondition) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Json options = {{"preconditions", {{"resourceVersion", "1"}}}};
    const auto stale = co_await evict("shop", "a", options);
    EXPECT_EQ(stale.status, 409);
    EXPECT_NE(stale.body.find("the ResourceVersion in the precondition (1) does not match"), std::string::npos);
    options["preconditions"]["resourceVersion"] = cluster.get("pods", "shop", "a")["metadata"]["resourceVersion"];
    const auto current = co_await evict("shop", "a", options);
    EXPECT_EQ(current.status, 201);
  });
}

struct BadBody {
  const char* body;
  const char* query;
  int status;
  const char* message;
};

TEST_F(EvictionTest, BodiesAreDecodedStrictlyWhenAsked) {
  const BadBody table[] = {
      {"", "", 400,
       "the object provided is unrecognized (must be of type Eviction): couldn't get version/kind; json parse error: "
       "unexpected end of JSON input (<empty>)"},
      {"{}", "", 400, "name in URL does not match name in Eviction object"},
      {R"({"metadata":{"name":"b"}})", "", 400, "name in URL does not match name in Eviction object"},
      {R"({"metadata":{"name":"a","namespace":"other"}})", "", 400,
       "the namespace of the provided object does not match the namespace sent on the request"},
      {R"({"apiVersion":"policy/v9","kind":"Eviction","metadata":{"name":"a"}})", "", 400,
       R"(Eviction in version "v9" cannot be handled as a Eviction: no kind "Eviction" is registered for version )"
       R"("policy/v9" in scheme "pkg/runtime/scheme.go:111")"},
      {R"({"metadata":{"name":"a"},"deleteOptions":{"preconditons":{}}})", "?fieldValidation=Strict", 400,
       R"(Eviction in version "v1" cannot be handled as a Eviction: strict decoding error: unknown field )"
       R"("deleteOptions.preconditons")"},
      {R"({"metadata":{"name":"a","name":"a"}})", "?fieldValidation=Strict", 400,
       R"(Eviction in version "v1" cannot be handled as a Eviction: strict decoding error: duplicate field )"
       R"("metadata.name")"},
      {R"({"metadata":{"name":"a"},"deleteOptions":{"preconditons":{}}})", "?fieldValidation=Ignore&dryRun=All", 201,
       ""},
  };
  in_world([&]() -> boost::asio::awaitable<void> {
    for (const BadBody& row : table) {
      const auto response =
          co_await ask("POST", std::string("/api/v1/namespaces/shop/pods/a/eviction") + row.query, row.body);
      EXPECT_EQ(response.status, row.status) << row.body;
      EXPECT_EQ(sim::text(Json::parse(response.body), "/message"), row.message) << row.body;
    }
  });
}

TEST_F(EvictionTest, MisspeltFieldWarnsByDefault) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto response = co_await ask("POST", "/api/v1/namespaces/shop/pods/a/eviction",
                                       R"({"metadata":{"name":"a"},"deleteOptions":{"preconditons":{}}})");
    EXPECT_EQ(response.status, 201);
    EXPECT_EQ(response.headers.find("Warning"), R"(299 - "unknown field \"deleteOptions.preconditons\"")");
  });
}

TEST_F(EvictionTest, OtherMethodsAreNotAllowed) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto response = co_await ask("GET", "/api/v1/namespaces/shop/pods/a/eviction");
    EXPECT_EQ(line(response),
              R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server does not )"
              R"(allow this method on the requested resource","reason":"MethodNotAllowed","details":{},"code":405})");
  });
}

// --- grace ---

struct GraceRow {
  std::optional<std::int64_t> asked;
  std::int64_t result;
};

TEST_F(EvictionTest, GracePeriods) {
  const GraceRow table[] = {{std::nullopt, 30}, {300, 300}, {5, 5}, {-1, 1}, {-7, 1}};
  in_world([&]() -> boost::asio::awaitable<void> {
    int index = 0;
    for (const GraceRow& row : table) {
      const std::string name = fmt::format("g{}", index++);
      cluster.create("pods", ready_pod("shop", name, "n1"));
      Json options = Json::object();
      if (row.asked) options["gracePeriodSeconds"] = *row.asked;
      const auto response = co_await evict("shop", name, options);
      EXPECT_EQ(response.status, 201);
      const Json pod = cluster.get("pods", "shop", name);
      EXPECT_EQ(sim::number(pod, "/metadata/deletionGracePeriodSeconds", -100), row.result) << name;
      EXPECT_EQ(sim::number(pod, "/metadata/generation"), 2);
    }
  });
}

TEST_F(EvictionTest, TerminatingPodsAreOnlyShortened) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const std::pair<std::int64_t, std::int64_t> steps[] = {{30, 30}, {300, 30}, {30, 30}, {10, 10}, {-5, 1}};
    for (const auto& [asked, left] : steps) {
      const auto before = cluster.revision();
      const Json options = {{"gracePeriodSeconds", asked}};
      const auto response = co_await evict("shop", "a", options);
      EXPECT_EQ(response.status, 201);
      const Json pod = cluster.get("pods", "shop", "a");
      EXPECT_EQ(sim::number(pod, "/metadata/deletionGracePeriodSeconds"), left) << asked;
      EXPECT_EQ(sim::number(pod, "/metadata/generation"), 2) << asked;
      const bool first = asked == 30 && before < cluster.revision();
      if (!first && asked >= left) EXPECT_EQ(cluster.revision(), before + (asked == left && asked < 30 ? 1u : 0u));
    }
    co_await pass(2s);
    EXPECT_TRUE(cluster.get("pods", "shop", "a").is_null());
  });
}

TEST_F(EvictionTest, GoneAtOnceWithoutGrace) {
  cluster.create("pods", pod("shop", "unbound", ""));
  Json finished = pod("shop", "finished", "n1");
  finished["status"]["phase"] = "Succeeded";
  cluster.create("pods", finished);
  in_world([&]() -> boost::asio::awaitable<void> {
    cluster.switches().scheduler = false;
    const Json none = Json::object(), zero = {{"gracePeriodSeconds", 0}};
    for (const auto& [name, options] :
         {std::pair("unbound", none), std::pair("finished", none), std::pair("a", zero)}) {
      const auto response = co_await evict("shop", name, options);
      EXPECT_EQ(response.status, 201) << name;
      EXPECT_TRUE(cluster.get("pods", "shop", name).is_null()) << name;
    }
  });
}

}  // namespace
}  // namespace haulout::testing
