#include <fmt/format.h>
#include <deque>

#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

// Reads the events of a watch one by one.
class Reader {
 public:
  Reader(Clock& clock, std::unique_ptr<http::BodyStream> stream) : clock_(clock), stream_(std::move(stream)) {}

  // Returns the next event, null after a proper end, or {"errc": CODE} after a failure.
  boost::asio::awaitable<Json> next(Duration patience = 400s) {
    auto chunk = co_await stream_->read_some(clock_.now() + patience);
    if (!chunk) co_return Json{{"errc", std::string(to_string(chunk.error().code()))}};
    if (chunk->empty()) co_return Json();
    EXPECT_TRUE(chunk->ends_with('\n'));
    co_return Json::parse(*chunk);
  }
  // Returns the next event as "ADDED a" or "BOOKMARK", or "end", or the error code.
  boost::asio::awaitable<std::string> brief(Duration patience = 400s) {
    const Json event = co_await next(patience);
    if (event.is_null()) co_return "end";
    if (event.contains("errc")) co_return event["errc"].get<std::string>();
    std::string result = event["type"].get<std::string>();
    const std::string name = sim::name_of(event["object"]);
    co_return name.empty() ? result : result + " " + name;
  }
  const http::ResponseHead& head() const { return stream_->head(); }

 private:
  Clock& clock_;
  std::unique_ptr<http::BodyStream> stream_;
};

class WatchTest : public SimTest {
 protected:
  void SetUp() override {
    add_node("n1");
    add_node("n2");
    cluster.create("pods", ready_pod("shop", "a", "n1"));
  }
  boost::asio::awaitable<Reader> watch(std::string query, std::string path = "/api/v1/pods") {
    http::Request request;
    request.target = path + "?watch=1&" + query;
    auto stream = co_await cluster.api().open(std::move(request), clock.now() + 10s);
    EXPECT_TRUE(stream);
    co_return Reader(clock, *std::move(stream));
  }
  std::string from_now() const { return fmt::format("resourceVersion={}", cluster.revision()); }
};

TEST_F(WatchTest, AnEvictionIsSeenInTheServersOrder) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Reader reader = co_await watch(from_now() + "&fieldSelector=spec.nodeName%3Dn1");
    EXPECT_EQ(reader.head().status, 200);
    co_await evict("shop", "a");
    Json event = co_await reader.next();
    EXPECT_EQ(event["type"], "MODIFIED");
    EXPECT_EQ(event["object"]["kind"], "Pod");
    const Json& target = sim::condition(event["object"], "DisruptionTarget");
    EXPECT_EQ(sim::text(target, "/status"), "True");
    EXPECT_EQ(sim::text(target, "/reason"), "EvictionByEvictionAPI");
    EXPECT_EQ(sim::text(target, "/message"), "Eviction API: evicting");
    EXPECT_FALSE(sim::terminating(event["object"]));
    event = co_await reader.next();
    EXPECT_TRUE(sim::terminating(event["object"]));
    EXPECT_EQ(sim::number(event["object"], "/metadata/deletionGracePeriodSeconds"), 30);
    event = co_await reader.next();  // the containers have stopped
    EXPECT_FALSE(sim::pod_ready(event["object"]));
    event = co_await reader.next();
    EXPECT_EQ(event["type"], "MODIFIED");
    EXPECT_EQ(sim::number(event["object"], "/metadata/deletionGracePeriodSeconds"), 0);
    const std::string last = sim::text(event["object"], "/metadata/resourceVersion");
    event = co_await reader.next();
    EXPECT_EQ(event["type"], "DELETED");
    EXPECT_EQ(sim::text(event["object"], "/metadata/resourceVersion"), std::to_string(std::stoul(last) + 1));
    EXPECT_GT(elapsed(), 30s);
    EXPECT_LT(elapsed(), 31s);
  });
}

TEST_F(WatchTest, GraceZeroIsThreeEventsWithConsecutiveRevisions) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Reader reader = co_await watch(from_now());
    const Json options = {{"gracePeriodSeconds", 0}};
    co_await evict("shop", "a", options);
    std::vector<unsigned long> revisions;
    for (const char* type : {"MODIFIED", "MODIFIED", "DELETED"}) {
      const Json event = co_await reader.next();
      EXPECT_EQ(event["type"], type);
      revisions.push_back(std::stoul(sim::text(event["object"], "/metadata/resourceVersion")));
    }
    EXPECT_EQ(revisions[1], revisions[0] + 1);
    EXPECT_EQ(revisions[2], revisions[0] + 2);
  });
}

TEST_F(WatchTest, AFinalizerHoldsThePodUntilItIsRemoved) {
  Json held = ready_pod("shop", "held", "n1", 2);
  held["metadata"]["finalizers"] = {"example.com/hold"};
  cluster.create("pods", held);
  in_world([&]() -> boost::asio::awaitable<void> {
    Reader reader = co_await watch(from_now());
    co_await evict("shop", "held");
    for (int i = 0; i < 4; ++i) EXPECT_EQ(co_await reader.brief(), "MODIFIED held");
    EXPECT_EQ(co_await reader.brief(30s), "timeout") << "nothing more while the finalizer is there";
    EXPECT_EQ(sim::number(cluster.get("pods", "shop", "held"), "/metadata/deletionGracePeriodSeconds", -1), 0);
    cluster.patch("pods", "shop", "held", {{"metadata", {{"finalizers", nullptr}}}});
    const Json event = co_await reader.next();
    EXPECT_EQ(event["type"], "DELETED");
    EXPECT_TRUE(sim::has_finalizers(event["object"])) << "shown as it was";
  });
}

TEST_F(WatchTest, EnteringAndLeavingASelectionAreAddedAndDeleted) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Reader reader = co_await watch(from_now() + "&labelSelector=app%3Ddb");
    cluster.patch("pods", "shop", "a", {{"metadata", {{"labels", {{"app", "db"}}}}}});
    EXPECT_EQ(co_await reader.brief(), "ADDED a");
    cluster.patch("pods", "shop", "a", {{"metadata", {{"labels", {{"app", "web"}}}}}});
    EXPECT_EQ(co_await reader.brief(), "DELETED a");
  });
}

TEST_F(WatchTest, ResumesFromAnOlderRevision) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const std::string then = from_now();
    cluster.create("pods", ready_pod("shop", "b", "n1"));
    cluster.remove("pods", "shop", "a");
    Reader reader = co_await watch(then);
    EXPECT_EQ(co_await reader.brief(), "ADDED b");
    EXPECT_EQ(co_await reader.brief(), "DELETED a");
  });
}

TEST_F(WatchTest, WithoutRevisionBeginsWithWhatIsThere) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Reader reader = co_await watch("timeoutSeconds=60");
    EXPECT_EQ(co_await reader.brief(), "ADDED a");
  });
}

TEST_F(WatchTest, ALostRevisionIsAnErrorLineInsideA200) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto old = cluster.revision();
    cluster.create("pods", ready_pod("shop", "b", "n1"));
    cluster.compact();
    Reader reader = co_await watch(fmt::format("resourceVersion={}", old));
    EXPECT_EQ(reader.head().status, 200);
    const Json event = co_await reader.next();
    EXPECT_EQ(event["type"], "ERROR");
    EXPECT_EQ(event["object"]["code"], 410);
    EXPECT_EQ(event["object"]["reason"], "Expired");
    EXPECT_EQ(event["object"]["message"], fmt::format("too old resource version: {} ({})", old, cluster.revision()));
    EXPECT_EQ(co_await reader.brief(), "end");
  });
}

TEST_F(WatchTest, ARevisionFromTheFutureIsSilent) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Reader reader = co_await watch(
        fmt::format("resourceVersion={}&allowWatchBookmarks=true&timeoutSeconds=130", cluster.revision() + 1000));
    cluster.create("pods", ready_pod("shop", "b", "n1"));
    EXPECT_EQ(co_await reader.brief(), "end");
    EXPECT_GE(elapsed(), 130s);
  });
}

TEST_F(WatchTest, BookmarksComeEachMinuteAndBeforeTheEnd) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Reader reader = co_await watch(from_now() + "&allowWatchBookmarks=true&timeoutSeconds=130");
    for (const auto moment : {60s, 120s, 128s}) {
      EXPECT_EQ(co_await reader.brief(), "BOOKMARK");
      EXPECT_GE(elapsed(), moment);
      EXPECT_LT(elapsed(), moment + 1s);
    }
    EXPECT_EQ(co_await reader.brief(), "end");
    EXPECT_GE(elapsed(), 130s);
    EXPECT_LT(elapsed(), 131s);
  });
}

TEST_F(WatchTest, ABookmarkIsAlmostAPod) {
  in_world([&]() -> boost::asio::awaitable<void> {
    http::Request request;
    request.target = "/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=25&" + from_now();
    auto stream = co_await cluster.api().open(request, clock.now() + 10s);
    const auto chunk = co_await (*stream)->read_some(clock.now() + 60s);
    EXPECT_EQ(*chunk, R"({"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":")" +
                          std::to_string(cluster.revision()) +
                          R"("},"spec":{"containers":null},"status":{}}})"
                          "\n");
  });
}

TEST_F(WatchTest, InitialEventsAreMarked) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Reader reader = co_await watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
    EXPECT_EQ(co_await reader.brief(), "ADDED a");
    const Json end = co_await reader.next();
    EXPECT_EQ(end["type"], "BOOKMARK");
    EXPECT_EQ(end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    Reader refused = co_await watch("sendInitialEvents=true");
    EXPECT_EQ(refused.head().status, 422);
  });
}

TEST_F(WatchTest, AServerThatGoesAwayResetsAndComesBackWithAnEmptyCache) {
  in_world([&]() -> boost::asio::awaitable<void> {
    const std::string then = from_now();
    Reader reader = co_await watch(then);
    cluster.create("pods", ready_pod("shop", "b", "n1"));
    EXPECT_EQ(co_await reader.brief(), "ADDED b");
    cluster.restart(20s);
    EXPECT_EQ(co_await reader.brief(), "reset");
    auto refused = co_await cluster.api().round_trip(http::Request(), clock.now() + 5s);
    EXPECT_EQ(refused.error().code(), Errc::unreachable);
    co_await pass(21s);
    Reader again = co_await watch(then);
    EXPECT_EQ(co_await again.brief(), "ERROR");
  });
}

TEST_F(WatchTest, ASilencedWatchCarriesNothing) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Reader reader = co_await watch(from_now() + "&allowWatchBookmarks=true&timeoutSeconds=300");
    cluster.silence_watches();
    cluster.create("pods", ready_pod("shop", "b", "n1"));
    EXPECT_EQ(co_await reader.brief(600s), "timeout");
    EXPECT_EQ(cluster.open_watches(), 1u);
  });
  EXPECT_EQ(cluster.open_watches(), 0u) << "dropped with its reader";
}

}  // namespace
}  // namespace haulout::testing
