// Fixture that rehearses the drain of one of two nodes. No I/O.
#pragma once

#include <gmock/gmock.h>

#include "cli/options/settings.hpp"
#include "cli/rehearse/rehearsal_text.hpp"
#include "rehearse/rehearsal.hpp"
#include "tests/rehearse/a_snapshot.hpp"

namespace haulout::rehearse {

// The snapshot has the format of `kubectl get nodes,pods,pdb,rs,ds -A -o json`. It has two nodes with two CPUs each. On
// n1 are three pods of a ReplicaSet and one pod of a DaemonSet. Each pod of the ReplicaSet requests half a CPU and
// takes 20 s to terminate.
class RehearsalTest : public ::testing::Test, protected ASnapshot {
 protected:
  RehearsalTest() {
    add_node("n1", "2");
    add_node("n2", "2");
    items.push_back(workload("ReplicaSet", "web", {{"replicas", 3}}));
    items.push_back(workload("DaemonSet", "logs", Json::object()));
    for (const char* name : {"web-a", "web-b", "web-c"}) items.push_back(pod(name, "ReplicaSet", "web", "500m"));
    items.push_back(pod("logs-1", "DaemonSet", "logs", "100m"));
    input.nodes = {"n1"};
    input.drain = drain::kubectl_defaults();
    input.drain.policy.daemon_set = drain::Treatment::skip;
    input.snapshot.read_at = WallTime(std::chrono::seconds(1'800'000'000));
  }

  Rehearsal play() {
    input.snapshot.documents = {{document()}};
    auto result = rehearse(input);
    if (!result) throw std::runtime_error(result.error().message());
    return *std::move(result);
  }
  std::string lines_of(const Rehearsal& rehearsal) const {
    std::string text;
    for (const std::string& line : cli::rehearsal_lines(rehearsal)) text += line + '\n';
    return text;
  }

  RehearsalInput input;
};

}  // namespace haulout::rehearse
