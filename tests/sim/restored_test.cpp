// A simulated cluster whose etcd is restored from a backup: clients list again after their watches end, and find the
// differences.
#include <fmt/format.h>

#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;
using sim::ChangeType;

class RestoredTest : public SimTest {
 protected:
  void SetUp() override { add_node("n1"); }
  Json there(const char* name) const { return cluster.get("pods", "shop", name); }
};

TEST_F(RestoredTest, ListenersAreToldOfEachObjectThatIsAnotherOneNow) {
  cluster.create("pods", ready_pod("shop", "gone", "n1"));
  cluster.create("pods", ready_pod("shop", "changed", "n1"));
  cluster.create("pods", ready_pod("shop", "replaced", "n1"));
  cluster.create("pods", ready_pod("shop", "same", "n1"));
  const auto then = cluster.revision();
  cluster.remove("pods", "shop", "gone");
  cluster.patch("pods", "shop", "changed", {{"metadata", {{"labels", {{"app", "db"}}}}}});
  cluster.remove("pods", "shop", "replaced");
  cluster.create("pods", ready_pod("shop", "replaced", "n2"));
  cluster.create("pods", ready_pod("shop", "new", "n1"));
  std::string told;
  cluster.on_change([&](const sim::Change& change) {
    EXPECT_TRUE(change.restored);
    const char* types[] = {"added", "modified", "deleted"};
    told += fmt::format("{} {} {}, ", types[static_cast<int>(change.type)], change.key.name,
                        sim::text(*change.object, "/spec/nodeName"));
  });
  cluster.restore_etcd(then);
  EXPECT_EQ(told, "modified changed n1, added gone n1, deleted new n1, deleted replaced n2, added replaced n1, ");
}

TEST_F(RestoredTest, APodThatWasLeavingLeavesOnceMore) {
  cluster.create("pods", ready_pod("shop", "a", "n1", 5));
  in_world([&]() -> boost::asio::awaitable<void> {
    cluster.delete_gracefully("pods", "shop", "a");
    const auto then = cluster.revision();
    co_await pass(100s);
    EXPECT_TRUE(there("a").is_null());
    cluster.restore_etcd(then);
    EXPECT_TRUE(sim::terminating(there("a")));
    co_await pass(6s);
    EXPECT_TRUE(there("a").is_null());
  });
}

TEST_F(RestoredTest, APodThatWasNotStaysAndCanLeaveAnew) {
  cluster.create("pods", ready_pod("shop", "a", "n1", 20));
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto then = cluster.revision();
    cluster.delete_gracefully("pods", "shop", "a");
    co_await pass(5s);
    cluster.restore_etcd(then);
    co_await pass(30s);
    EXPECT_FALSE(there("a").is_null()) << "nobody has asked it to leave";
    cluster.delete_gracefully("pods", "shop", "a");
    co_await pass(19s);
    EXPECT_FALSE(there("a").is_null());
    co_await pass(2s);
    EXPECT_TRUE(there("a").is_null());
  });
}

TEST_F(RestoredTest, AVolumeIsDetachedAndAttachedAnew) {
  const auto loaded = cluster.load(R"(
kind: PersistentVolume
metadata: {name: pv}
spec: {csi: {driver: csi.example.com, volumeHandle: h}, claimRef: {namespace: shop, name: data}}
---
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {volumeName: pv}
)");
  ASSERT_TRUE(loaded) << loaded.error().message();
  Json made = ready_pod("shop", "a", "n1", 0);
  made["spec"]["volumes"] = Json::array({{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}});
  cluster.create("pods", made);
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(10s);
    EXPECT_EQ(cluster.all("volumeattachments").size(), 1u);
    cluster.remove("pods", "shop", "a");
    co_await pass(1s);
    const auto while_it_is_detached = cluster.revision();
    co_await pass(10s);
    EXPECT_EQ(cluster.all("volumeattachments").size(), 0u);
    cluster.restore_etcd(while_it_is_detached);
    EXPECT_EQ(cluster.all("volumeattachments").size(), 1u);
    co_await pass(10s);
    EXPECT_EQ(cluster.all("volumeattachments").size(), 0u);
  });
}

TEST_F(RestoredTest, ANamespaceThatWasDyingDies) {
  cluster.create("pods", ready_pod("shop", "a", "n1", 0));
  in_world([&]() -> boost::asio::awaitable<void> {
    cluster.terminate_namespace("shop");
    const auto then = cluster.revision();
    co_await pass(10s);
    EXPECT_TRUE(cluster.get("namespaces", "", "shop").is_null());
    cluster.restore_etcd(then);
    EXPECT_FALSE(there("a").is_null());
    co_await pass(10s);
    EXPECT_TRUE(there("a").is_null());
    EXPECT_TRUE(cluster.get("namespaces", "", "shop").is_null());
  });
}

TEST_F(RestoredTest, ThePagesOfAListThatHadBegunAreLost) {
  for (const char* name : {"a", "b", "c"}) cluster.create("pods", ready_pod("shop", name, "n1"));
  const auto then = cluster.revision();
  in_world([&]() -> boost::asio::awaitable<void> {
    const auto page = co_await ask("GET", "/api/v1/pods?limit=1");
    const std::string next = sim::text(Json::parse(page.body), "/metadata/continue");
    EXPECT_FALSE(next.empty());
    cluster.restore_etcd(then);
    EXPECT_EQ((co_await ask("GET", "/api/v1/pods?limit=1&continue=" + next)).status, 410);
  });
}

}  // namespace
}  // namespace haulout::testing
