// Tests that a rehearsal of a running cluster reads it page by page and writes nothing.
#include "rehearse/snapshot.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "retry/task_group.hpp"
#include "tests/support/test_cluster.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::rehearse {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Json = nlohmann::json;

class SnapshotTest : public haulout::testing::VirtualTimeTest {
 protected:
  SnapshotTest() {
    for (int i = 0; i < 1100; ++i)
      cluster.create("pods", {{"apiVersion", "v1"},
                              {"kind", "Pod"},
                              {"metadata", {{"name", fmt::format("p{}", i)}, {"namespace", "shop"}}},
                              {"spec", {{"nodeName", "n1"}}},
                              {"status", {{"phase", "Running"}}}});
  }
  Result<SnapshotRead> read() {
    std::optional<Result<SnapshotRead>> result;
    run(with_cluster(result));
    return *std::move(result);
  }

  SeededRng rng{1};
  sim::TestCluster cluster{context.get_executor(), clock, rng};

 private:
  boost::asio::awaitable<void> with_cluster(std::optional<Result<SnapshotRead>>& result) {
    co_await with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn(cluster.run());
      k8s::Client client(cluster.api(), clock);
      result = co_await read_snapshot(client, clock.now() + 60s);
    });
  }
};

TEST_F(SnapshotTest, EveryPageAndNothingButLists) {
  const auto snapshot = read();
  ASSERT_TRUE(snapshot) << snapshot.error().message();
  std::size_t pods = 0;
  for (const auto& [document, file] : snapshot->snapshot.documents)
    if (const Json list = Json::parse(document); list["kind"] == "PodList") pods += list["items"].size();
  EXPECT_EQ(pods, 1100u);
  for (const auto& entry : cluster.audit()) EXPECT_EQ(entry.verb, "list") << entry.resource;
}

TEST_F(SnapshotTest, WhatMayNotBeListedIsLeftOutAndSaid) {
  cluster.forbid("list", "statefulsets");
  const auto snapshot = read();
  ASSERT_TRUE(snapshot);
  EXPECT_THAT(snapshot->left_out, ElementsAre(HasSubstr("statefulsets")));
}

TEST_F(SnapshotTest, WithoutPodsThereIsNothingToRehearse) {
  cluster.forbid("list", "pods");
  const auto snapshot = read();
  ASSERT_FALSE(snapshot);
  EXPECT_THAT(snapshot.error().message(), HasSubstr("pods"));
}

}  // namespace
}  // namespace haulout::rehearse
