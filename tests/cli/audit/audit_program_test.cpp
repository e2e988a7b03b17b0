// Tests `haulout audit -f`: its exit codes, which scripts rely on, and the files that it reads.
#include "cli/audit/audit_program.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "agent/process/process.hpp"
#include "base/files.hpp"
#include "cli/options/command_line.hpp"
#include "retry/real_clock.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/rehearse/a_snapshot.hpp"

namespace haulout::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AuditProgramTest : public ::testing::Test, protected rehearse::ASnapshot {
 protected:
  AuditProgramTest() {
    for (const char* node : {"n1", "n2"}) add_node(node, "2");
    items.push_back(workload("ReplicaSet", "web", {{"replicas", 2}}));
    items.push_back(pod("web-0", "ReplicaSet", "web", "500m", "n1"));
    items.push_back(pod("web-1", "ReplicaSet", "web", "500m", "n2"));
  }
  ~AuditProgramTest() override {
    ::close(err_);
    ::close(out_);
  }

  int audited(std::vector<std::string> more = {}) {
    EXPECT_TRUE(write_whole_file(path_, document()));
    return run({"audit", "-f", path_}, std::move(more));
  }
  int run(std::vector<std::string> args, std::vector<std::string> more = {}) {
    args.insert(args.end(), more.begin(), more.end());
    agent::FdSink out(out_), err(err_);
    agent::Process process{context_.get_executor(), clock_, rng_, out, err, {}, "haulout"};
    return audit_cluster(process, std::get<Settings>(parse_command_line("haulout", args)), [](auto) {
      ADD_FAILURE() << "nothing is read from a cluster";
      return 0;
    });
  }
  static std::string text_of(int fd) {
    std::string text(1 << 20, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::pread(fd, text.data(), text.size(), 0))));
    return text;
  }
  void block() {
    add_budget(2);
    items.back()["spec"] = {{"maxUnavailable", 0}, {"selector", {{"matchLabels", {{"app", "web"}}}}}};
    items.back()["metadata"]["generation"] = 1;
    items.back()["status"] = {
        {"observedGeneration", 1}, {"expectedPods", 2}, {"currentHealthy", 2}, {"desiredHealthy", 2}};
  }

  const testing::TempDir directory_;
  const std::string path_ = directory_ / "snapshot.json";
  int out_ = ::memfd_create("out", MFD_CLOEXEC), err_ = ::memfd_create("err", MFD_CLOEXEC);
  boost::asio::io_context context_{1};
  RealClock clock_;
  SeededRng rng_{1};
};

TEST_F(AuditProgramTest, NothingBlocks) {
  EXPECT_EQ(audited(), agent::exit_done) << text_of(err_);
  EXPECT_THAT(text_of(out_), HasSubstr("nodes: 2 can be drained, 0 blocked\n"));
}

TEST_F(AuditProgramTest, SomethingBlocks) {
  block();
  const std::string config = directory_ / "haulout.yaml";
  ASSERT_TRUE(write_whole_file(config, "drain-deadline: 10m\n"));
  EXPECT_EQ(audited({"--config", config}), agent::exit_not_done);
  EXPECT_THAT(text_of(out_), HasSubstr("nodes: 0 can be drained, 2 blocked by shop/ReplicaSet/web\n"));
  EXPECT_THAT(text_of(out_),
              HasSubstr("    pod shop/web-0 (shop/ReplicaSet/web): blocked by PodDisruptionBudget shop/web"));
}

TEST_F(AuditProgramTest, ARiskFailsOnlyIfItIsWished) {
  items.push_back(pod("bare", "ReplicaSet", "web", "500m"));
  items.back()["metadata"].erase("ownerReferences");
  EXPECT_EQ(audited(), agent::exit_done);
  EXPECT_EQ(audited({"--fail-on", "risk"}), agent::exit_not_done);
}

TEST_F(AuditProgramTest, WhatTheBaselineHasDoesNotFail) {
  block();
  EXPECT_EQ(audited({"--no-rehearse", "-o", "json"}), agent::exit_not_done);
  const std::string baseline = directory_ / "baseline.json";
  ASSERT_TRUE(write_whole_file(baseline, text_of(out_)));
  EXPECT_EQ(audited({"--no-rehearse", "--baseline", baseline}), agent::exit_done);
  EXPECT_THAT(text_of(out_), HasSubstr("1 in the baseline"));
}

TEST_F(AuditProgramTest, ABaselineThatCannotBeUsed) {
  EXPECT_EQ(audited({"--baseline", directory_ / "none.json"}), agent::exit_usage);
  EXPECT_EQ(audited({"--baseline", path_}), agent::exit_usage);
  EXPECT_THAT(text_of(err_), HasSubstr("it is not the output of haulout audit -o json"));
}

TEST_F(AuditProgramTest, AnUnusableSnapshot) {
  items = Json::array();
  EXPECT_EQ(audited(), agent::exit_connection);
  EXPECT_THAT(text_of(err_), HasSubstr("the files have no nodes, and no workloads or budgets either"));
  EXPECT_EQ(run({"audit", "-f", directory_ / "none.json"}), agent::exit_connection);
}

TEST_F(AuditProgramTest, ADirectoryOfManifests) {
  const std::string manifests = directory_ / "manifests";
  std::filesystem::create_directories(manifests + "/deep");
  ASSERT_TRUE(write_whole_file(manifests + "/web.yaml",
                               "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: web}\n"
                               "spec: {selector: {}, template: {}}\n"));
  ASSERT_TRUE(write_whole_file(manifests + "/deep/bare.yml", "kind: Pod\napiVersion: v1\nmetadata: {name: bare}\n"));
  ASSERT_TRUE(write_whole_file(manifests + "/README.txt", "no manifest"));
  EXPECT_EQ(run({"audit", "-f", manifests}), agent::exit_done) << text_of(err_);
  EXPECT_THAT(text_of(out_), HasSubstr("manifests with 2 pods of 2 owners"));
  EXPECT_THAT(text_of(out_), HasSubstr("UnmanagedPod"));
  EXPECT_THAT(text_of(out_), Not(HasSubstr("nodes:")));
}

// A file of another program stops the audit only if a person has named it.
TEST_F(AuditProgramTest, ADirectoryWithForeignFiles) {
  const std::string manifests = directory_ / "repository";
  std::filesystem::create_directories(manifests + "/.github/workflows");
  ASSERT_TRUE(write_whole_file(manifests + "/.github/workflows/ci.yaml", "on: push\n"));
  ASSERT_TRUE(write_whole_file(manifests + "/kustomization.yaml", "resources: [bare.yaml]\n"));
  ASSERT_TRUE(write_whole_file(manifests + "/bare.yaml", "kind: Pod\napiVersion: v1\nmetadata: {name: bare}\n"));
  EXPECT_EQ(run({"audit", "-f", manifests}), agent::exit_done) << text_of(err_);
  EXPECT_THAT(text_of(out_), HasSubstr("manifests with 1 pod of 1 owner"));
  EXPECT_THAT(text_of(out_), HasSubstr("1 hidden file was skipped: " + manifests + "/.github/workflows/ci.yaml"));
  EXPECT_THAT(text_of(out_), HasSubstr("1 kustomization was skipped"));
  EXPECT_EQ(run({"audit", "-f", manifests + "/kustomization.yaml"}), agent::exit_connection);
  EXPECT_EQ(run({"audit", "-f", manifests + "/.github"}), agent::exit_connection);
}

TEST_F(AuditProgramTest, ADirectoryWithoutManifests) {
  const std::string empty = directory_ / "empty";
  std::filesystem::create_directories(empty);
  EXPECT_EQ(run({"audit", "-f", empty}), agent::exit_connection);
  EXPECT_THAT(text_of(err_), HasSubstr("has no file *.yaml, *.yml or *.json"));
}

TEST_F(AuditProgramTest, TheAgentsConfigurationCounts) {
  items[2]["spec"]["template"]["spec"]["volumes"] = {{{"name", "tmp"}, {"emptyDir", Json::object()}}};
  item("web-0")["spec"]["volumes"] = {{{"name", "tmp"}, {"emptyDir", Json::object()}}};
  const std::string config = directory_ / "haulout.yaml";
  ASSERT_TRUE(write_whole_file(config, "emptydir: refuse\n"));
  EXPECT_EQ(audited(), agent::exit_done);
  EXPECT_EQ(audited({"--no-rehearse", "--config", config}), agent::exit_not_done);
  ASSERT_TRUE(write_whole_file(config, "emptydir: sometimes\n"));
  EXPECT_EQ(audited({"--config", config}), agent::exit_usage);
}

}  // namespace
}  // namespace haulout::cli
