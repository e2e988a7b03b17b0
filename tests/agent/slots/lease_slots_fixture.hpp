// Fixture with nodes that compete for the slots of a pool with two zones, on the simulated cluster. Owns the cluster
// and the slots of each node.
#pragma once

#include <gmock/gmock.h>

#include "agent/slots/lease_slots.hpp"
#include "retry/task_group.hpp"
#include "tests/support/test_cluster.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {

class LeaseSlotsTest : public haulout::testing::VirtualTimeTest {
 protected:
  LeaseSlotsTest() {
    add({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "haulout"}}}});
    for (const auto& [name, zone] : {std::pair("a1", "a"), std::pair("a2", "a"), std::pair("b1", "b")})
      add({{"apiVersion", "v1"},
           {"kind", "Node"},
           {"metadata",
            {{"name", name},
             {"uid", std::string(name) + "-uid"},
             {"labels", {{"zone", zone}, {"role", "db"}, {"haulout.dev/pool", "default"}}}}},
           {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
    options.grouping.zone_label = "zone";
    options.limit = [this](std::size_t nodes) { return nodes == 3 ? pool_limit : zone_limit; };
  }

  void add(const sim::Json& object) { ASSERT_TRUE(cluster.load(object.dump())); }

  struct Contender {
    Contender(LeaseSlotsTest& test, const std::string& name)
        : node{name, name + "-uid"}, slots(test.client, test.rng, node, test.options) {}
    OwnNode node;
    LeaseSlots slots;
  };
  Contender& node(const std::string& name) {
    contenders.push_back(std::make_unique<Contender>(*this, name));
    return *contenders.back();
  }
  // Runs `body` while the simulated cluster runs.
  void live(const std::function<boost::asio::awaitable<void>()>& body) {
    run(with_task_group([&](TaskGroup& group) {
      group.spawn(cluster.run());
      return body();
    }));
  }
  // Adds a Lease that the agent of node `by` has taken.
  void hold(const std::string& lease, const std::string& by) {
    add({{"apiVersion", "coordination.k8s.io/v1"},
         {"kind", "Lease"},
         {"metadata", {{"name", lease}, {"namespace", "haulout"}, {"labels", {{"haulout.dev/pool", "default"}}}}},
         {"spec", {{"holderIdentity", by + "/" + by + "-uid"}}}});
  }
  // Adds the Lease of the first slot, held by node `by`. The Lease was created by hand or has lost its label.
  void hold_unlabelled(const std::string& by) {
    hold("haulout-default-0", by);
    cluster.patch("leases", "haulout", "haulout-default-0",
                  {{"metadata", {{"labels", {{"haulout.dev/pool", nullptr}}}}}});
  }
  TimePoint soon() const { return clock.now() + std::chrono::seconds(30); }
  std::vector<std::string> leases() const {
    std::vector<std::string> names;
    for (const sim::Json& lease : cluster.all("leases")) names.push_back(lease["metadata"]["name"]);
    std::sort(names.begin(), names.end());
    return names;
  }
  // Returns the writes to Leases in order, for example "create haulout-…", "delete haulout-…".
  std::vector<std::string> writes() const {
    std::vector<std::string> out;
    for (const auto& entry : cluster.audit())
      if (entry.applied && entry.resource == "leases") out.push_back(entry.verb + " " + entry.name);
    return out;
  }

  SeededRng rng{1};
  SeededRng world_rng{2};
  sim::TestCluster cluster{context.get_executor(), clock, world_rng};
  k8s::Client client{cluster.api(), clock, {.validation = k8s::FieldValidation::strict}};
  LeaseSlotsOptions options;
  std::size_t pool_limit = 2, zone_limit = 1;
  std::vector<std::unique_ptr<Contender>> contenders;
};

}  // namespace haulout::agent
