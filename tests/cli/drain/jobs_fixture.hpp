// Fixture for drain, cordon and uncordon against a simulated cluster of two nodes, in virtual time.
#pragma once

#include "cli/drain/jobs.hpp"
#include "tests/cli/command_fixture.hpp"
#include "tests/worlds/faults.hpp"

namespace haulout::cli {

class JobsTest : public CommandTest {
 protected:
  JobsTest() {
    for (const char* name : {"n1", "n2"}) add_node(name);
  }
  void add_node(const std::string& name) {
    add({{"apiVersion", "v1"},
         {"kind", "Node"},
         {"metadata", {{"name", name}, {"labels", {{"pool", "old"}}}}},
         {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }
  void add_pod(const std::string& name, const std::string& node, bool managed) {
    Json metadata = {{"name", name}, {"namespace", "shop"}};
    if (managed)
      metadata["ownerReferences"] = {
          {{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"name", "r"}, {"uid", "r"}, {"controller", true}}};
    add({{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata", metadata},
         {"spec",
          {{"nodeName", node},
           {"terminationGracePeriodSeconds", 5},
           {"containers", {{{"name", "m"}, {"image", "i"}}}}}},
         {"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }
  // From now on, requests with this token come from the pod in namespace shop, which runs on the node.
  void set_token_of_pod(const std::string& token, const std::string& pod, const std::string& node) {
    sim::Identity identity = sim::service_account("shop", "drainer");
    identity.node_name = node;
    identity.pod_name = pod;
    identity.pod_uid = sim::uid_of(cluster.get("pods", "shop", pod));
    cluster.set_token(token, identity);
  }
  // Runs a job until it ends, or until a signal arrives after `interrupt`. Returns the exit code.
  int run_job(Job& job, std::optional<Duration> interrupt = std::nullopt) {
    return CommandTest::run_job(job, {std::chrono::seconds(1), std::chrono::minutes(10), interrupt});
  }
  int drain(const std::vector<std::string>& args, std::optional<Duration> interrupt = std::nullopt) {
    const Settings settings = settings_of(args);
    LineView view(console, {});
    DrainJob job(tools(), settings, view, nullptr);
    return run_job(job, interrupt);
  }
  int cordon(const std::vector<std::string>& args) {
    CordonJob job(tools(), settings_of(args));
    return run_job(job);
  }
  bool cordoned(const std::string& node) const {
    return sim::flag(cluster.get("nodes", "", node), "/spec/unschedulable");
  }
};

}  // namespace haulout::cli
