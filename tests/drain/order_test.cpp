#include "drain/order.hpp"

#include <gmock/gmock.h>

#include "tests/drain/builders.hpp"

namespace haulout::drain {
namespace {
using testing::a_pod;

TEST(Order, TiersThenLongestGraceFirst) {
  auto quick = a_pod("quick"), slow = a_pod("slow"), low = a_pod("low"), high = a_pod("high"), dns = a_pod("dns"),
       first = a_pod("first"), last = a_pod("last"), own = a_pod("own"), garbled = a_pod("garbled");
  quick.grace_seconds = 1;
  slow.grace_seconds = 600;
  garbled.grace_seconds = 599;
  garbled.annotations["haulout.dev/drain-order"] = "soon";  // not an integer, so it is ignored
  low.priority = -10;
  high.priority = 1000;
  dns.priority_class = "system-cluster-critical";
  dns.priority = 2000000000;
  first.annotations["haulout.dev/drain-order"] = "-1";
  first.priority_class = "system-node-critical";
  last.annotations["haulout.dev/drain-order"] = "7";
  std::vector<k8s::Pod> pods{last, dns, high, quick, own, slow, garbled, low, first};
  std::sort(pods.begin(), pods.end(), [&](const k8s::Pod& a, const k8s::Pod& b) {
    return order_key(a, own.uid, std::nullopt) < order_key(b, own.uid, std::nullopt);
  });
  std::vector<std::string> names;
  for (const auto& pod : pods) names.push_back(pod.name);
  EXPECT_THAT(names, ::testing::ElementsAre("first", "low", "slow", "garbled", "quick", "high", "dns", "last", "own"));
}

TEST(Order, AnEarlierStageComesBeforeEverythingElse) {
  auto early = a_pod("early");
  early.annotations["haulout.dev/drain-order"] = "1000";
  early.priority_class = "system-cluster-critical";
  const auto late = a_pod("late");
  for (const Stage stage : {Stage::last, Stage::daemon_sets, Stage::own})
    EXPECT_LT(order_key(early, "", {}), order_key(late, "", {}, {}, stage));
  EXPECT_LT(order_key(early, "", {}, {}, Stage::last), order_key(late, "", {}, {}, Stage::daemon_sets));
  EXPECT_LT(order_key(early, "", {}, {}, Stage::daemon_sets), order_key(late, late.uid, {}));
  EXPECT_EQ(order_key(late, late.uid, {}, {}, Stage::last).tier.stage, Stage::own);
}

TEST(Order, RulesAndStorage) {
  auto app = a_pod("app"), urgent = a_pod("urgent"), db = a_pod("db"), csi = a_pod("csi"), dns = a_pod("dns"),
       stubborn = a_pod("stubborn");
  urgent.priority = 1000;
  csi.storage_controller = true;
  dns.priority_class = "system-cluster-critical";
  db.labels = {{"app", "db"}};
  stubborn.labels = {{"app", "db"}};
  stubborn.annotations["haulout.dev/drain-order"] = "-5";
  const std::vector<OrderRule> rules{*parse_order_rule("app=db=10"), *parse_order_rule("app=20")};
  std::vector<k8s::Pod> pods{dns, db, csi, urgent, app, stubborn};
  std::sort(pods.begin(), pods.end(), [&](const k8s::Pod& a, const k8s::Pod& b) {
    return order_key(a, "", std::nullopt, rules) < order_key(b, "", std::nullopt, rules);
  });
  std::vector<std::string> names;
  for (const auto& pod : pods) names.push_back(pod.name);
  EXPECT_THAT(names, ::testing::ElementsAre("stubborn", "app", "urgent", "csi", "dns", "db"));
}

TEST(Order, StorageThenWebhooksAtTheEndOfTheirClass) {
  auto app = a_pod("app"), urgent = a_pod("urgent"), csi = a_pod("csi"), hook = a_pod("hook"), both = a_pod("both"),
       dns = a_pod("dns"), critical_hook = a_pod("critical-hook"), placed = a_pod("placed");
  urgent.priority = 1000;
  csi.storage_controller = true;
  csi.priority = 2000;
  hook.webhook_server = true;
  both.webhook_server = both.storage_controller = true;
  critical_hook.webhook_server = true;
  placed.webhook_server = true;
  placed.annotations["haulout.dev/drain-order"] = "-1";
  for (k8s::Pod* pod : {&dns, &critical_hook}) pod->priority_class = "system-cluster-critical";
  dns.priority = 2000000000;
  std::vector<k8s::Pod> pods{critical_hook, dns, both, hook, csi, urgent, app, placed};
  std::sort(pods.begin(), pods.end(), [](const k8s::Pod& a, const k8s::Pod& b) {
    return order_key(a, "", std::nullopt) < order_key(b, "", std::nullopt);
  });
  std::vector<std::string> names;
  for (const auto& pod : pods) names.push_back(pod.name);
  EXPECT_THAT(names, ::testing::ElementsAre("placed", "app", "urgent", "csi", "hook", "both", "dns", "critical-hook"));
}

TEST(Order, TheMembersOfAGangFollowEachOther) {
  const auto member = [](const std::string& name, const std::string& gang, std::int32_t priority) {
    k8s::Pod pod = a_pod(name);
    pod.pod_group = gang;
    pod.priority = priority;
    return pod;
  };
  auto web = a_pod("web"), log = a_pod("log"), own = member("own", "a", 0);
  web.priority = 2000;
  auto placed = member("placed", "c", 3000);
  placed.annotations["haulout.dev/drain-order"] = "-1";
  const auto a1 = member("a1", "a", 3), a2 = member("a2", "a", 1), b1 = member("b1", "b", 2), b2 = member("b2", "b", 0);
  const auto key = [&](const k8s::Pod& pod) {
    return order_key(pod, own.uid, std::nullopt, {},
                     !pod.pod_group.empty() ? Stage::gang
                     : pod.name == log.name ? Stage::last
                                            : Stage::first);
  };
  std::vector<k8s::Pod> pods{own, log, b1, a1, b2, a2, placed, web};
  std::sort(pods.begin(), pods.end(), [&](const k8s::Pod& a, const k8s::Pod& b) { return key(a) < key(b); });
  std::vector<std::string> names;
  for (const auto& pod : pods) names.push_back(pod.name);
  EXPECT_THAT(names, ::testing::ElementsAre("web", "placed", "a1", "a2", "b1", "b2", "log", "own"));
}

TEST(Order, RulesAsTheyAreWritten) {
  const auto rule = parse_order_rule("app=db=-10");
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->order, -10);
  EXPECT_TRUE(rule->selector.matches({{"app", "db"}}));
  EXPECT_TRUE(parse_order_rule("tier in (db,queue)=1"));
  EXPECT_TRUE(parse_order_rule("legacy=1")) << "whatever its value";
  for (const char* wrong : {"", "app", "app=db", "app=db=", "app=db=soon", "=3", "app=db=1.5", "in (=3"}) {
    const auto refused = parse_order_rule(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().message(), ::testing::HasSubstr("SELECTOR=NUMBER")) << wrong;
  }
}

TEST(Order, OneGraceForAllLeavesTheName) {
  auto a = a_pod("a"), b = a_pod("b");
  b.grace_seconds = 600;
  EXPECT_LT(order_key(a, "", 5), order_key(b, "", 5));
  EXPECT_GT(order_key(a, "", std::nullopt), order_key(b, "", std::nullopt));
}

}  // namespace
}  // namespace haulout::drain
