// Three nodes with one pod of a ReplicaSet each, as a snapshot, and a rehearsal of their updates. No I/O.
#pragma once

#include <stdexcept>
#include <string>

#include "rehearse/fleet_rehearsal.hpp"
#include "tests/rehearse/a_snapshot.hpp"

namespace haulout::rehearse {

struct AFleet : ASnapshot {
  // `cpus` is what each node has. A pod takes half a CPU, and 20 s to terminate.
  explicit AFleet(const std::string& cpus) {
    for (const char* name : {"n1", "n2", "n3"}) add_node(name, cpus);
    items.push_back(workload("ReplicaSet", "web", {{"replicas", 3}}));
    items.push_back(pod("web-a", "ReplicaSet", "web", "500m", "n1"));
    items.push_back(pod("web-b", "ReplicaSet", "web", "500m", "n2"));
    items.push_back(pod("web-c", "ReplicaSet", "web", "500m", "n3"));
    // Fri 2027-01-15 08:00:00 UTC
    input.snapshot.read_at = WallTime(std::chrono::seconds(1'800'000'000));
    input.give_up = std::chrono::hours(1);
  }

  FleetRehearsal play() {
    input.snapshot.documents = {{document()}};
    auto result = rehearse_fleet(input);
    if (!result) throw std::runtime_error(result.error().message());
    return *std::move(result);
  }

  FleetInput input;
};

}  // namespace haulout::rehearse
