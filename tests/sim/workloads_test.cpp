// What workload controllers make of real objects: pods of Jobs, templates, names.
#include "tests/sim/sim_test.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

class WorkloadsTest : public SimTest {
 protected:
  void SetUp() override {
    add_node("n1");
    add_node("n2");
  }
  static Json owner(const std::string& kind, const std::string& version, const std::string& name) {
    return {{"apiVersion", version}, {"kind", kind}, {"name", name}, {"uid", name}, {"controller", true}};
  }
};

TEST_F(WorkloadsTest, APodOfAJobIsLetGoOnceItHasEnded) {
  struct Row {
    const char* what;
    Json owner;
    Json finalizers;
    bool goes;
  };
  const std::string tracking = "batch.kubernetes.io/job-tracking";
  const Row table[] = {
      {"of a Job", owner("Job", "batch/v1", "j"), {tracking}, true},
      {"held by another, too", owner("Job", "batch/v1", "j"), {tracking, "example.com/hold"}, false},
      {"of another Job", owner("Job", "batch.example.com/v1", "j"), {tracking}, false},
      {"of no Job", owner("ReplicaSet", "apps/v1", "j"), {tracking}, false},
  };
  int next = 0;
  for (const Row& row : table) {
    Json member = ready_pod("shop", fmt::format("p{}", next++), "n1", 5);
    member["metadata"]["ownerReferences"] = Json::array({row.owner});
    member["metadata"]["finalizers"] = row.finalizers;
    cluster.create("pods", member);
  }
  in_world([&]() -> boost::asio::awaitable<void> {
    for (int i = 0; i < next; ++i) co_await evict("shop", fmt::format("p{}", i));
    co_await pass(4s);
    EXPECT_EQ(cluster.all("pods").size(), std::size(table)) << "none while it runs";
    co_await pass(60s);
    for (int i = 0; i < next; ++i)
      EXPECT_EQ(cluster.get("pods", "shop", fmt::format("p{}", i)).is_null(), table[i].goes) << table[i].what;
  });
}

TEST_F(WorkloadsTest, AFinishedPodOfAJobLosesItsFinalizer) {
  Json done = ready_pod("shop", "done", "n1");
  done["metadata"]["ownerReferences"] = Json::array({owner("Job", "batch/v1", "j")});
  done["metadata"]["finalizers"] = {"batch.kubernetes.io/job-tracking"};
  done["status"]["phase"] = "Succeeded";
  cluster.create("pods", done);
  in_world([&]() -> boost::asio::awaitable<void> {
    co_await pass(1s);
    EXPECT_FALSE(sim::has_finalizers(cluster.get("pods", "shop", "done")));
  });
}

}  // namespace
}  // namespace haulout::testing
