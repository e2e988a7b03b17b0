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
  garbled.annotations["haulout.dev/drain-order"] = "soon";  // not an integer: as if absent
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
  EXPECT_THAT(names, ::testing::ElementsAre("first", "low", "slow", "garbled", "quick", "own", "high", "dns", "last"));
}

TEST(Order, OneGraceForAllLeavesTheName) {
  auto a = a_pod("a"), b = a_pod("b");
  b.grace_seconds = 600;
  EXPECT_LT(order_key(a, "", 5), order_key(b, "", 5));
  EXPECT_GT(order_key(a, "", std::nullopt), order_key(b, "", std::nullopt));
}

}  // namespace
}  // namespace haulout::drain
