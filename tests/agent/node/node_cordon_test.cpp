// Tests who has cordoned a Node, and since when.
#include "agent/node/node_cordon.hpp"

#include <gtest/gtest.h>

#include "drain/cordon.hpp"
#include "k8s/codec.hpp"

namespace haulout::agent {
namespace {

const WallTime at = *k8s::parse_time("2026-11-23T17:40:59Z");

k8s::Node cordoned(const std::string& manager, const std::string& mark_by = {}) {
  k8s::Node node;
  node.name = "n1";
  node.ready = true;
  node.unschedulable = true;
  node.unschedulable_manager = manager;
  node.taints = {{std::string(drain::unschedulable_taint), "NoSchedule", at}};
  if (!mark_by.empty())
    node.annotations.emplace(drain::cordon_annotation,
                             drain::encode_mark({"run", mark_by, at - std::chrono::seconds(1)}));
  return node;
}

TEST(PersonsCordon, IsEachThatNoAgentSet) {
  EXPECT_EQ(persons_cordon(cordoned("kubectl-cordon")), (PersonsCordon{"", "kubectl-cordon", at}));
  EXPECT_EQ(persons_cordon(cordoned("")), (PersonsCordon{"", "", at})) << "the server does not know who";
  EXPECT_EQ(persons_cordon(cordoned("haulout", "jane@laptop")),
            (PersonsCordon{"jane@laptop", "", at - std::chrono::seconds(1)}))
      << "haulout cordon, haulout drain";
  EXPECT_EQ(persons_cordon(cordoned("haulout", "agent")), std::nullopt);
  EXPECT_EQ(persons_cordon(cordoned("kubectl-cordon", "agent")), (PersonsCordon{"", "kubectl-cordon", at}))
      << "the mark is of an earlier cordon";
  k8s::Node open = cordoned("haulout", "jane@laptop");
  open.unschedulable = false;
  EXPECT_EQ(persons_cordon(open), std::nullopt);
}

TEST(OutOfService, SaysWhy) {
  k8s::Node node = cordoned("haulout", "jane@laptop");
  EXPECT_EQ(out_of_service(node), "cordoned by jane@laptop");
  node.ready = false;
  EXPECT_EQ(out_of_service(node), "NotReady, cordoned by jane@laptop");
  node.unschedulable = false;
  EXPECT_EQ(out_of_service(node), "NotReady");
  node.ready = true;
  EXPECT_EQ(out_of_service(node), "");
  EXPECT_EQ(out_of_service(cordoned("haulout", "agent")), "cordoned by its agent");
  EXPECT_EQ(out_of_service(cordoned("")), "cordoned");
  EXPECT_EQ(out_of_service(cordoned("kubectl-cordon")), "cordoned with kubectl-cordon");
}

}  // namespace
}  // namespace haulout::agent
