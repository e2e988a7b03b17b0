// Fixture with a small simulated cluster in virtual time, and helpers for requests to its API.
#pragma once

#include <fmt/format.h>

#include "retry/task_group.hpp"
#include "tests/support/test_cluster.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::testing {

using sim::Json;

class SimTest : public VirtualTimeTest {
 protected:
  SeededRng rng{1};
  sim::TestCluster cluster{context.get_executor(), clock, rng};

  // Runs `body` while the simulated cluster runs.
  void in_world(std::function<boost::asio::awaitable<void>()> body) {
    run(with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn(cluster.run());
      co_await body();
      group.cancel();
    }));
  }

  boost::asio::awaitable<http::Response> ask(std::string method, std::string target, std::string body = {},
                                             std::string type = "application/json") {
    http::Request request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.body = std::move(body);
    if (!request.body.empty()) request.headers.add("Content-Type", type);
    request.headers.add("User-Agent", "haulout/test");
    auto response = co_await cluster.api().round_trip(std::move(request), clock.now() + std::chrono::seconds(60));
    EXPECT_TRUE(response) << response.error().message();
    co_return response ? *std::move(response) : http::Response();
  }

  boost::asio::awaitable<http::Response> evict(std::string ns, std::string name, Json options = Json::object(),
                                               std::string query = {}) {
    Json body = {{"apiVersion", "policy/v1"},
                 {"kind", "Eviction"},
                 {"metadata", {{"name", name}, {"namespace", ns}}},
                 {"deleteOptions", options}};
    return ask("POST", fmt::format("/api/v1/namespaces/{}/pods/{}/eviction{}", ns, name, query), body.dump());
  }

  void add_node(std::string name) {
    cluster.create("nodes", {{"metadata", {{"name", name}, {"labels", {{"kubernetes.io/hostname", name}}}}},
                             {"spec", Json::object()},
                             {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }

  static Json pod(std::string ns, std::string name, std::string node, std::int64_t grace = 30) {
    Json result = {{"metadata", {{"name", name}, {"namespace", ns}, {"labels", {{"app", "web"}}}}},
                   {"spec", {{"terminationGracePeriodSeconds", grace}, {"containers", {{{"name", "app"}}}}}},
                   {"status", {{"phase", "Pending"}}}};
    if (!node.empty()) result["spec"]["nodeName"] = node;
    return result;
  }
  // Returns a pod that is Running and Ready.
  static Json ready_pod(std::string ns, std::string name, std::string node, std::int64_t grace = 30) {
    Json result = pod(ns, name, node, grace);
    result["status"] = {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
    return result;
  }
  static Json budget(std::string ns, std::string name, Json spec) {
    if (!spec.contains("selector")) spec["selector"] = {{"matchLabels", {{"app", "web"}}}};
    return {{"metadata", {{"name", name}, {"namespace", ns}}}, {"spec", spec}};
  }
  std::string uid(std::string ns, std::string name) { return sim::uid_of(cluster.get("pods", ns, name)); }
  boost::asio::awaitable<void> pass(Duration duration) { return clock.sleep_until(clock.now() + duration); }
  // Returns the body without the newline at its end.
  static std::string line(const http::Response& response) {
    EXPECT_TRUE(response.body.ends_with('\n'));
    return response.body.substr(0, response.body.size() - 1);
  }
};

}  // namespace haulout::testing
