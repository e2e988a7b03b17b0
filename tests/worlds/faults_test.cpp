#include <fmt/format.h>

#include "tests/worlds/faults.hpp"

#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

using sim::Fault;
using sim::FaultKind;
using sim::FaultRule;

class FaultsTest : public SimTest {
 protected:
  void SetUp() override {
    add_node("n1");
    cluster.create("pods", ready_pod("shop", "a", "n1"));
  }
  sim::FaultTransport faults{cluster.api(), clock, rng};

  void plan(Fault fault, std::string verb = {}, std::size_t count = 1) {
    FaultRule rule;
    rule.verb = std::move(verb);
    rule.count = count;
    rule.fault = std::move(fault);
    faults.add(rule);
  }
  static Fault fault(FaultKind kind) {
    Fault result;
    result.kind = kind;
    return result;
  }
  boost::asio::awaitable<Result<http::Response>> send(std::string method, std::string target, std::string body = {}) {
    http::Request request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.body = std::move(body);
    co_return co_await faults.round_trip(std::move(request), clock.now() + 10s);
  }
  boost::asio::awaitable<std::unique_ptr<http::BodyStream>> watch() {
    http::Request request;
    request.target = fmt::format("/api/v1/pods?watch=1&resourceVersion={}", cluster.revision());
    auto stream = co_await faults.open(std::move(request), clock.now() + 10s);
    EXPECT_TRUE(stream);
    co_return *std::move(stream);
  }
};

struct FailureRow {
  FaultKind kind;
  Errc code;
  bool applied;
};

TEST_F(FaultsTest, FailuresOfOneRequest) {
  const FailureRow table[] = {
      {FaultKind::refuse, Errc::unreachable, false},
      {FaultKind::dns, Errc::dns, false},
      {FaultKind::tls, Errc::tls, false},
      {FaultKind::protocol, Errc::protocol, false},
      {FaultKind::credentials, Errc::unavailable, false},
      {FaultKind::crowded, Errc::unreachable, false},
      {FaultKind::reset_before, Errc::reset, false},
      {FaultKind::reset_after, Errc::reset, true},
      {FaultKind::stall, Errc::timeout, true},
  };
  in_world([&]() -> boost::asio::awaitable<void> {
    for (const FailureRow& row : table) {
      plan(fault(row.kind));
      const auto before = cluster.revision();
      const auto response = co_await send("POST", "/api/v1/namespaces/shop/pods/a/eviction",
                                          fmt::format(R"({{"metadata":{{"name":"a"}},"deleteOptions":)"
                                                      R"({{"gracePeriodSeconds":{}}}}})",
                                                      row.kind == FaultKind::stall ? 5 : 20));
      EXPECT_EQ(response.error().code(), row.code) << to_string(row.kind);
      EXPECT_EQ(cluster.revision() > before, row.applied) << to_string(row.kind);
    }
  });
}

TEST_F(FaultsTest, AFieldSelectorThatIsIgnored) {
  add_node("n2");
  cluster.create("pods", ready_pod("shop", "b", "n2"));
  in_world([&]() -> boost::asio::awaitable<void> {
    for (const char* target :
         {"/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=5",
          "/api/v1/pods?limit=5&fieldSelector=spec.nodeName%3Dn1"}) {
      const auto sound = co_await send("GET", target);
      EXPECT_EQ(sound->body.find("n2"), std::string::npos) << target;
      plan(fault(FaultKind::unselected));
      const auto all = co_await send("GET", target);
      EXPECT_NE(all->body.find("n2"), std::string::npos) << target;
    }
    plan(fault(FaultKind::unselected));
    EXPECT_TRUE(co_await send("GET", "/api/v1/pods"));
    EXPECT_EQ(faults.struck().size(), 3u) << "there is nothing to ignore";
  });
}

TEST_F(FaultsTest, AnswersThatAreNoneOfTheServers) {
  in_world([&]() -> boost::asio::awaitable<void> {
    plan(fault(FaultKind::html));
    const auto html = co_await send("GET", "/api/v1/nodes");
    EXPECT_EQ(html->status, 200);
    EXPECT_EQ(html->headers.find("Content-Type"), "text/html");
    Fault throttle = fault(FaultKind::throttle);
    throttle.retry_after = "Thu, 01 Jan 2026 00:00:30 GMT";
    plan(throttle);
    const auto throttled = co_await send("GET", "/api/v1/nodes");
    EXPECT_EQ(throttled->status, 429);
    EXPECT_EQ(throttled->headers.find("Retry-After"), "Thu, 01 Jan 2026 00:00:30 GMT");
    Fault gateway = fault(FaultKind::server_error);
    gateway.code = 504;
    gateway.proxy = true;
    plan(gateway);
    const auto failed = co_await send("GET", "/api/v1/nodes");
    EXPECT_EQ(failed->status, 504);
    EXPECT_EQ(failed->body.front(), '<');
    plan(fault(FaultKind::truncate));
    const auto half = co_await send("GET", "/api/v1/nodes");
    EXPECT_EQ(half->status, 200);
    EXPECT_FALSE(Json::accept(half->body));
    const auto sound = co_await send("GET", "/api/v1/nodes");
    EXPECT_TRUE(Json::accept(sound->body));
    EXPECT_EQ(faults.struck().size(), 4u);
    EXPECT_EQ(faults.struck().back(), "truncate list nodes");
  });
}

TEST_F(FaultsTest, AnswersThatAreWholeAndWrong) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Fault hidden = fault(FaultKind::hidden_error);
    hidden.code = 500;
    plan(hidden);
    const auto failure = co_await send("GET", "/api/v1/nodes");
    EXPECT_EQ(failure->status, 200);
    EXPECT_EQ(Json::parse(failure->body)["status"], "Failure");
    EXPECT_EQ(Json::parse(failure->body)["code"], 500);
    plan(fault(FaultKind::no_kind));
    const auto nameless = co_await send("GET", "/api/v1/nodes/n1");
    EXPECT_FALSE(Json::parse(nameless->body).contains("kind"));
    EXPECT_EQ(Json::parse(nameless->body)["metadata"]["name"], "n1");
    plan(fault(FaultKind::no_uid), {}, 2);
    const auto list = co_await send("GET", "/api/v1/nodes");
    EXPECT_EQ(Json::parse(list->body)["kind"], "NodeList");
    EXPECT_FALSE(Json::parse(list->body)["items"][0]["metadata"].contains("uid"));
    const auto one = co_await send("GET", "/api/v1/nodes/n1");
    EXPECT_FALSE(Json::parse(one->body)["metadata"].contains("uid"));
    plan(fault(FaultKind::future));
    const auto future = co_await send("GET", "/api/v1/nodes");
    EXPECT_EQ(future->status, 504);
    EXPECT_EQ(Json::parse(future->body)["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    Fault nowhere = fault(FaultKind::server_error);
    nowhere.code = 404;
    nowhere.plain = true;
    plan(nowhere);
    const auto none = co_await send("GET", "/api/v1/nodes");
    EXPECT_EQ(none->body, "404 page not found\n");
  });
}

TEST_F(FaultsTest, EventsThatAreWholeAndWrong) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Fault shapeless = fault(FaultKind::no_uid);
    shapeless.after_pieces = 0;
    plan(shapeless, "watch");
    const auto one = co_await watch();
    cluster.create("pods", ready_pod("shop", "b", "n1"));
    cluster.create("pods", ready_pod("shop", "c", "n1"));
    const auto wrong = co_await one->read_some(clock.now() + 10s);
    EXPECT_FALSE(Json::parse(*wrong)["object"]["metadata"].contains("uid"));
    const auto right = co_await one->read_some(clock.now() + 10s);
    EXPECT_TRUE(Json::parse(*right)["object"]["metadata"].contains("uid"));

    Fault error = fault(FaultKind::error_event);
    error.code = 429;
    error.after_pieces = 0;
    plan(error, "watch");
    const auto other = co_await watch();
    const auto line = co_await other->read_some(clock.now() + 10s);
    EXPECT_EQ(Json::parse(*line)["type"], "ERROR");
    EXPECT_EQ(Json::parse(*line)["object"]["code"], 429);
    const auto end = co_await other->read_some(clock.now() + 10s);
    EXPECT_EQ(*end, "");
  });
}

TEST_F(FaultsTest, ALimitOfConnectionsCountsOpenStreams) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Fault crowded = fault(FaultKind::crowded);
    crowded.most_streams = 2;
    plan(crowded, {}, SIZE_MAX);
    const auto one = co_await watch();
    EXPECT_TRUE(co_await send("GET", "/api/v1/nodes"));
    {
      const auto two = co_await watch();
      const auto refused = co_await send("GET", "/api/v1/nodes");
      EXPECT_EQ(refused.error().code(), Errc::unreachable);
    }
    EXPECT_TRUE(co_await send("GET", "/api/v1/nodes"));
  });
}

TEST_F(FaultsTest, SlowIsLaterByTheDelay) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Fault slow = fault(FaultKind::slow);
    slow.delay = 3s;
    plan(slow);
    const auto response = co_await send("GET", "/api/v1/nodes");
    EXPECT_TRUE(response);
    EXPECT_GE(elapsed(), 3s);
  });
}

TEST_F(FaultsTest, AWatchIsCutAfterSoManyPieces) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Fault cut = fault(FaultKind::cut);
    cut.after_pieces = 1;
    plan(cut, "watch");
    const auto stream = co_await watch();
    cluster.create("pods", ready_pod("shop", "b", "n1"));
    cluster.create("pods", ready_pod("shop", "c", "n1"));
    const auto first = co_await stream->read_some(clock.now() + 10s);
    EXPECT_TRUE(Json::accept(*first));
    const auto second = co_await stream->read_some(clock.now() + 10s);
    EXPECT_EQ(second.error().code(), Errc::reset);
  });
}

TEST_F(FaultsTest, AWatchStallsAfterATime) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Fault stall = fault(FaultKind::stall);
    stall.after = 5s;
    plan(stall, "watch");
    const auto stream = co_await watch();
    cluster.after(6s, [&] { cluster.create("pods", ready_pod("shop", "b", "n1")); });
    const auto nothing = co_await stream->read_some(clock.now() + 60s);
    EXPECT_EQ(nothing.error().code(), Errc::timeout);
    EXPECT_GE(elapsed(), 60s);
  });
}

TEST_F(FaultsTest, HalfALineThenTheEnd) {
  in_world([&]() -> boost::asio::awaitable<void> {
    Fault half = fault(FaultKind::half_line);
    half.after_pieces = 0;
    plan(half, "watch");
    const auto stream = co_await watch();
    cluster.create("pods", ready_pod("shop", "b", "n1"));
    const auto piece = co_await stream->read_some(clock.now() + 10s);
    EXPECT_FALSE(piece->empty());
    EXPECT_FALSE(piece->ends_with('\n'));
    const auto end = co_await stream->read_some(clock.now() + 10s);
    EXPECT_TRUE(end->empty());
  });
}

TEST_F(FaultsTest, SplitLosesNothing) {
  in_world([&]() -> boost::asio::awaitable<void> {
    plan(fault(FaultKind::split), "watch");
    const auto stream = co_await watch();
    cluster.create("pods", ready_pod("shop", "b", "n1"));
    std::string line_read;
    int parts = 0;
    while (!line_read.ends_with('\n')) {
      const auto piece = co_await stream->read_some(clock.now() + 10s);
      line_read += *piece;
      ++parts;
    }
    EXPECT_GT(parts, 1);
    EXPECT_EQ(Json::parse(line_read)["object"]["metadata"]["name"], "b");
  });
}

TEST_F(FaultsTest, RulesCountSkipAndExpire) {
  in_world([&]() -> boost::asio::awaitable<void> {
    FaultRule rule;
    rule.verb = "list";
    rule.skip = 1;
    rule.count = 2;
    rule.until = clock.now() + 10s;
    rule.fault.kind = FaultKind::refuse;
    faults.add(rule);
    std::string outcome;
    for (int i = 0; i < 5; ++i) {
      const auto response = co_await send("GET", "/api/v1/nodes");
      outcome += response ? 'y' : 'n';
    }
    EXPECT_EQ(outcome, "ynnyy");
    const auto other_verb = co_await send("GET", "/api/v1/nodes/n1");
    EXPECT_TRUE(other_verb);
  });
}

}  // namespace
}  // namespace haulout::testing
