#include "sim/http_front.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>

#include "http/client.hpp"
#include "retry/real_clock.hpp"
#include "retry/task_group.hpp"
#include "tests/support/test_cluster.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

TEST(HttpFront, ServesListsAndWatchesOnLoopback) {
  boost::asio::io_context context{1};
  RealClock clock;
  SeededRng rng{1};
  sim::TestCluster cluster(context.get_executor(), clock, rng);
  cluster.create("nodes", {{"metadata", {{"name", "n1"}}}});
  auto front = sim::HttpFront::listen(context.get_executor(), clock, cluster.api());
  ASSERT_TRUE(front) << front.error().message();
  http::Endpoint endpoint;
  endpoint.kind = http::Endpoint::Kind::tcp;
  endpoint.host = "127.0.0.1";
  endpoint.port = (*front)->port();
  auto client = http::Client::create(context.get_executor(), clock, endpoint, {});
  ASSERT_TRUE(client) << client.error().message();

  const auto talk = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
    group.spawn(cluster.run());
    group.spawn((*front)->run());
    http::Request list;
    list.target = "/api/v1/nodes";
    const auto listed = co_await (*client)->round_trip(list, clock.now() + 10s);
    EXPECT_TRUE(listed);
    if (listed) EXPECT_EQ(sim::Json::parse(listed->body)["items"][0]["metadata"]["name"], "n1");

    http::Request watch;
    watch.target = "/api/v1/nodes?watch=1&timeoutSeconds=60";
    auto stream = co_await (*client)->open(watch, clock.now() + 10s);
    EXPECT_TRUE(stream);
    if (stream) {
      const auto line = co_await (*stream)->read_some(clock.now() + 10s);
      EXPECT_TRUE(line && line->find(R"("type":"ADDED")") != std::string::npos);
    }
    stream = Error(Errc::invalid, "dropped");
    group.cancel();
  };
  std::exception_ptr failure;
  boost::asio::co_spawn(context, with_task_group(talk), [&](std::exception_ptr thrown) { failure = thrown; });
  context.run();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace
}  // namespace haulout::testing
