// Promise P10 in numbers: how many requests a drain needs if nothing holds it up.
#include "tests/scenario/guards_fixture.hpp"

namespace haulout::scenario {
using namespace std::chrono_literals;
namespace {
using drain::Outcome;
using drain::VolumeWait;

// The requests besides one eviction per pod. The drain reads the Node three times (at first, for the cordon, at the
// end) and patches it once. It lists its pods twice and the budgets once, reviews two permissions, and opens three
// watches (pods, budgets, Node).
constexpr std::size_t basic = 12;
// A first list of VolumeAttachments, their watch, and a list at the end. If nothing is attached, only the first list.
constexpr std::size_t of_volumes = 3;
static_assert(basic + of_volumes <= 15, "what a drain may take besides its pods and what is counted one by one");
// Lists of the nodes and of the pods of the cluster.
constexpr std::size_t of_fit = 2;

class RequestCount : public Guards {
 protected:
  RequestCount() {
    options.volumes = VolumeWait::off;
    options.max_concurrent = 0;
  }
  void add_pods_with_volumes(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string name = "db-" + std::to_string(i);
      add(a_volume(name));
      add(a_pod(name, {.spec = mounting({name})}));
    }
  }
  void deploy_in(const std::string& ns, const std::string& kind, const std::string& name, int replicas) {
    add(a_workload(kind, name, replicas, {{"terminationGracePeriodSeconds", 5}},
                   {{"sim.haulout.dev/prefers-node", "n1"}}, ns));
  }
  // Returns the number of all requests except the evictions. Expects exactly one eviction per pod.
  std::size_t besides_evictions(std::size_t pods) {
    EXPECT_THAT(drain(), Ended(Outcome::drained));
    EXPECT_EQ(evictions().size(), pods);
    EXPECT_EQ(requests("get", "pods").size(), 0u);
    return cluster.audit().size() - evictions().size();
  }
};

TEST_F(RequestCount, P10_AFewMoreThanPods) {
  add_pods(50);
  EXPECT_EQ(besides_evictions(50), basic);
}

TEST_F(RequestCount, P10_OneForEachDaemonSet) {
  add_pods(50);
  for (const char* name : {"net", "logs"}) add(a_workload("DaemonSet", name, 0, Json::object()));
  EXPECT_EQ(besides_evictions(50), basic + 2);
}

TEST_F(RequestCount, P10_OneForEachFurtherPage) {
  add_pods(50);
  options.page_size = 20;
  EXPECT_EQ(besides_evictions(50), basic + 2);
}

// The agent's default waits for volumes if the drain may read them.
TEST_F(RequestCount, P10_OneForEachVolume) {
  add_pods(40);
  add_pods_with_volumes(10);
  options.volumes = VolumeWait::if_permitted;
  EXPECT_EQ(besides_evictions(50), basic + of_volumes + 10);
}

TEST_F(RequestCount, P10_OneWhereNoVolumeIsAttached) {
  add_pods(50);
  options.volumes = VolumeWait::if_permitted;
  EXPECT_EQ(besides_evictions(50), basic + 1);
}

TEST_F(RequestCount, P10_GuardsTakeTwoForEachDeploymentAndForEachNamespace) {
  for (const char* name : {"web", "api", "mail"}) deploy_in("shop", "Deployment", name, 10);
  for (const char* name : {"db", "queue"}) deploy_in("back", "StatefulSet", name, 2);
  options.guards.max_unavailable = drain::Share{100, true};
  options.guards.single_replica = drain::SingleReplica::warn;
  EXPECT_EQ(besides_evictions(34), basic + 3 * 2 + 2 + 2 * 2);
}

TEST_F(RequestCount, P10_SingleReplicasTakeNoNamespace) {
  for (const char* name : {"web", "api", "mail"}) deploy_in("shop", "Deployment", name, 10);
  options.guards.single_replica = drain::SingleReplica::warn;
  EXPECT_EQ(besides_evictions(30), basic + 3 * 2);
}

TEST_F(RequestCount, P10_RoomTakesTwo) {
  add_pods(50);
  options.fit = drain::FitPolicy::warn;
  EXPECT_EQ(besides_evictions(50), basic + of_fit);
}

}  // namespace
}  // namespace haulout::scenario
