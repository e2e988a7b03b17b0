// Tests that a rehearsal of a running cluster reads it page by page and writes nothing.
#include "rehearse/snapshot.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "rehearse/stage.hpp"
#include "retry/task_group.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/support/scripted_transport.hpp"
#include "tests/support/test_cluster.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::rehearse {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Json = nlohmann::json;

// A server whose answers are longer than the client reads, unless their pages are small. It forgets the place of a list
// once, as etcd does when it compacts.
class LongAnswers final : public http::Transport {
 public:
  LongAnswers(http::Transport& server, std::size_t longest) : server_(server), longest_(longest) {}
  Task<http::Response> round_trip(http::Request request, TimePoint deadline) override {
    const bool goes_on = request.target.find("continue=") != std::string::npos;
    if (goes_on && request.target.find("/pods") != std::string::npos && !std::exchange(forgot_, true))
      co_return haulout::testing::json_response(
          410, R"({"kind":"Status","status":"Failure","reason":"Expired","code":410})");
    auto response = co_await server_.round_trip(std::move(request), deadline);
    if (response && response->body.size() > longest_)
      co_return Error(Errc::protocol, "the body is longer than the client reads");
    co_return response;
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request request, TimePoint deadline) override {
    return server_.open(std::move(request), deadline);
  }
  bool forgot() const { return forgot_; }

 private:
  http::Transport& server_;
  std::size_t longest_;
  bool forgot_ = false;
};

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
  Result<SnapshotRead> read() { return read_through(cluster.api()); }
  Result<SnapshotRead> read_through(http::Transport& transport) {
    std::optional<Result<SnapshotRead>> result;
    run(with_cluster(result, transport));
    return *std::move(result);
  }
  static std::set<std::string> pods_in(const Snapshot& snapshot) {
    std::set<std::string> names;
    for (const Document& document : snapshot.documents)
      if (const Json list = Json::parse(document.text); list["kind"] == "PodList")
        for (const Json& pod : list["items"])
          EXPECT_TRUE(names.insert(pod["metadata"]["name"]).second) << "is there twice: " << pod["metadata"]["name"];
    return names;
  }

  SeededRng rng{1};
  sim::TestCluster cluster{context.get_executor(), clock, rng};

 private:
  boost::asio::awaitable<void> with_cluster(std::optional<Result<SnapshotRead>>& result, http::Transport& transport) {
    co_await with_task_group([&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn(cluster.run());
      k8s::Client client(transport, clock);
      result = co_await read_snapshot(client, clock.now() + 60s);
    });
  }
};

TEST_F(SnapshotTest, EveryPageAndNothingButLists) {
  const auto snapshot = read();
  ASSERT_TRUE(snapshot) << snapshot.error().message();
  EXPECT_THAT(pods_in(snapshot->snapshot), SizeIs(1100));
  for (const auto& entry : cluster.audit()) EXPECT_EQ(entry.verb, "list") << entry.resource;
}

// Pods of 10 kB are ordinary, and a page of 500 of them is longer than an answer may be.
TEST_F(SnapshotTest, PagesThatAreTooLongAreReadInPartsAndAnExpiredListAnew) {
  LongAnswers server(cluster.api(), 30'000);
  const auto snapshot = read_through(server);
  ASSERT_TRUE(snapshot) << snapshot.error().message();
  EXPECT_TRUE(server.forgot());
  EXPECT_THAT(pods_in(snapshot->snapshot), SizeIs(1100));
}

TEST_F(SnapshotTest, WhatMayNotBeListedIsLeftOutAndSaid) {
  cluster.forbid("list", "statefulsets");
  const auto snapshot = read();
  ASSERT_TRUE(snapshot);
  EXPECT_THAT(snapshot->left_out, ElementsAre(HasSubstr("statefulsets")));
}

TEST(Stage, KeepsNeitherTheTextNorWhatNothingReads) {
  const Json container = {{"name", "server"},
                          {"image", "server:1"},
                          {"env", {{{"name", "A"}, {"value", "b"}}}},
                          {"livenessProbe", {{"periodSeconds", 1}}},
                          {"resources", {{"requests", {{"cpu", "1"}}}}},
                          {"ports", {{{"containerPort", 80}}}}};
  const Json managed = {{{"manager", "kubectl"}, {"time", "2026-11-27T10:00:00Z"}}};
  const Json metadata = {
      {"name", "p"},
      {"namespace", "shop"},
      {"managedFields", managed},
      {"annotations", {{"kubectl.kubernetes.io/last-applied-configuration", "…"}, {"note", "kept"}}}};
  Json set = {{"kind", "ReplicaSet"}, {"metadata", metadata}};
  set["spec"]["template"]["spec"]["initContainers"] = Json::array({container});
  const Json items = {{{"kind", "Pod"}, {"metadata", metadata}, {"spec", {{"containers", {container}}}}},
                      {{"kind", "Node"}, {"metadata", {{"name", "n"}, {"managedFields", managed}}}},
                      set};
  const std::string text = Json{{"kind", "List"}, {"items", items}}.dump();
  Snapshot snapshot{.documents = {{text}, {text}},
                    .read_at = WallTime(std::chrono::sys_days(std::chrono::year(2027) / 1 / 1)),
                    .stored = true};
  constexpr std::uint32_t page_size = 500;
  Stage stage(Assumptions(), 1, page_size);
  ASSERT_TRUE(stage.load(snapshot, {}));
  for (const Document& document : snapshot.documents) EXPECT_TRUE(document.text.empty());

  const auto pod = stage.cluster.get("pods", "shop", "p");
  EXPECT_FALSE(pod["metadata"].contains("managedFields"));
  EXPECT_EQ(pod["metadata"]["annotations"].dump(), R"({"note":"kept"})");
  for (const auto& kept :
       {pod["spec"]["containers"][0],
        stage.cluster.get("replicasets", "shop", "p")["spec"]["template"]["spec"]["initContainers"][0]})
    EXPECT_EQ(kept.dump(), R"({"image":"server:1","name":"server","ports":[{"containerPort":80}],)"
                           R"("resources":{"requests":{"cpu":"1"}}})");
  EXPECT_TRUE(stage.cluster.get("nodes", "", "n")["metadata"].contains("managedFields")) << "they show who cordoned it";
  EXPECT_THAT(stage.assumed(), ::testing::Contains(HasSubstr("2026-11-27T10:00:00Z"))) << "the times were read before";
}

class StoredSnapshot : public ::testing::Test {
 protected:
  // The names of the objects in the file, which is read in pieces; or else the error.
  std::string names_in(const std::string& file) {
    Snapshot snapshot{.documents = {{"", file, true}}, .read_at = {}, .stored = true};
    const auto read = objects_of(snapshot, {});
    if (!read) return read.error().message();
    std::string names;
    for (const auto& object : read->all) names += object["metadata"]["name"].get<std::string>() + ' ';
    return names;
  }

  testing::TempDir directory_;
};

TEST_F(StoredSnapshot, JsonIsReadInPieces) {
  Json list = {{"kind", "NodeList"}, {"items", Json::array()}};
  std::string names;
  for (int i = 0; i < 5000; ++i) {
    list["items"].push_back({{"metadata", {{"name", fmt::format("n{}", i)}}}});
    names += fmt::format("n{} ", i);
  }
  EXPECT_EQ(names_in(directory_.write("all.json", list.dump(4))), names);
}

TEST_F(StoredSnapshot, YamlAndErrorsAreAsInMemory) {
  EXPECT_EQ(names_in(directory_.write("n.yaml", "kind: Node\nmetadata: {name: n1}\n")), "n1 ");
  EXPECT_THAT(names_in(directory_.write("cut.json", R"({"kind": "List", "items": [{"kind": "Node",)")),
              AllOf(HasSubstr("cut.json cannot be used"), HasSubstr("ends in the middle")));
  EXPECT_THAT(names_in(directory_.write("status.json", R"({"kind": "Status", "message": "no"})")),
              HasSubstr("status.json cannot be used: document 1: a Status instead of objects: no"));
  EXPECT_THAT(names_in(directory_.write("here", "") + "not"), HasSubstr("No such file"));
}

TEST_F(SnapshotTest, WithoutPodsThereIsNothingToRehearse) {
  cluster.forbid("list", "pods");
  const auto snapshot = read();
  ASSERT_FALSE(snapshot);
  EXPECT_THAT(snapshot.error().message(), HasSubstr("pods"));
}

}  // namespace
}  // namespace haulout::rehearse
