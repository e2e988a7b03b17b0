// How the cost of the simulation grows with the size of the cluster, measured in objects looked at, not in time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "sim/virtual_clock.hpp"
#include "tests/support/test_cluster.hpp"

namespace haulout::sim {
namespace {

using namespace std::chrono_literals;

// Fewer replicas than nodes, so that the number of budgets with pods on one node does not depend on the number of
// nodes.
constexpr int replicas = 4;

void add_app(TestCluster& cluster, const char* resource, int number, int nodes) {
  const std::string name = fmt::format("app-{}", number);
  const Json labels = {{"app", name}};
  const Json spec = {{"replicas", replicas},
                     {"selector", {{"matchLabels", labels}}},
                     {"template", {{"metadata", {{"labels", labels}}}, {"spec", Json::object()}}}};
  cluster.create(resource, {{"metadata", {{"name", name}, {"namespace", "shop"}, {"uid", name}}}, {"spec", spec}});
  cluster.create("poddisruptionbudgets", {{"metadata", {{"name", name}, {"namespace", "shop"}}},
                                          {"spec", {{"maxUnavailable", 1}, {"selector", {{"matchLabels", labels}}}}}});
  for (int i = 0; i < replicas; ++i) {
    const Json owner = {{"apiVersion", "apps/v1"},
                        {"kind", std::string(find_resource(resource)->kind)},
                        {"name", name},
                        {"uid", name},
                        {"controller", true}};
    cluster.create("pods",
                   {{"metadata",
                     {{"name", fmt::format("{}-{}", name, i)},
                      {"namespace", "shop"},
                      {"labels", labels},
                      {"ownerReferences", Json::array({owner})}}},
                    {"spec", {{"nodeName", fmt::format("n{}", (number * replicas + i) % nodes)}}},
                    {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }
}

// Returns the number of objects that the simulation looks at while every pod is deleted once and recreated, and each of
// the `nodes` nodes reboots once. The pods belong to workloads of this kind (`resource`).
std::uint64_t looked_at(const char* resource, int nodes) {
  boost::asio::io_context context{1};
  VirtualClock clock{context};
  SeededRng rng{1};
  TestCluster cluster(context.get_executor(), clock, rng);
  for (int i = 0; i < nodes; ++i) {
    cluster.create("nodes", {{"metadata", {{"name", fmt::format("n{}", i)}}}});
    cluster.after(std::chrono::seconds(1 + 10 * i),
                  [&cluster, i] { cluster.reboot_node(fmt::format("n{}", i), 5s, fmt::format("boot-{}", i)); });
  }
  for (int i = 0; i < nodes; ++i) add_app(cluster, resource, i, nodes);
  std::size_t seconds = 0, came = 0;
  for (const Json& pod : cluster.all("pods"))
    cluster.after(std::chrono::seconds(++seconds),
                  [&cluster, name = name_of(pod)] { cluster.delete_gracefully("pods", "shop", name, 2); });
  cluster.on_change([&came](const Change& change) {
    came += change.key.resource == "pods" && change.type == ChangeType::added ? 1 : 0;
  });
  boost::asio::cancellation_signal stop;
  boost::asio::co_spawn(context, cluster.run(),
                        boost::asio::bind_cancellation_slot(stop.slot(), [](std::exception_ptr) {}));
  const std::uint64_t before = cluster.store().listed();
  clock.run(clock.now() + std::chrono::seconds(seconds) + 60s);
  const std::uint64_t seen = cluster.store().listed() - before;
  stop.emit(boost::asio::cancellation_type::terminal);
  clock.run();
  EXPECT_EQ(came, seconds) << "not every pod has come back";
  return seen;
}

TEST(Growth, TwiceThePodsCostLittleMoreThanTwiceAsMuch) {
  for (const char* resource : {"replicasets", "statefulsets"}) {
    const std::uint64_t once = looked_at(resource, 10), twice = looked_at(resource, 20);
    EXPECT_GT(once, 10u * replicas);
    EXPECT_LT(twice, once * 5 / 2) << resource << ": " << once << " objects looked at for 40 pods";
  }
}

}  // namespace
}  // namespace haulout::sim
