// Fixture with workloads whose pods are all on the drained node, and checks of what their guards did.
#pragma once

#include "tests/scenario/scenario.hpp"

namespace haulout::scenario {

class Guards : public Scenario {
 protected:
  Guards() { options.timeout = std::chrono::minutes(15); }

  // Gives the ReplicaSet an owner.
  void put_below(const std::string& name, const char* api, const char* kind) {
    cluster.patch(
        "replicasets", "shop", name,
        {{"metadata",
          {{"ownerReferences",
            {{{"apiVersion", api}, {"kind", kind}, {"name", "above"}, {"uid", "above-uid"}, {"controller", true}}}}}}});
  }
  // Adds a workload whose pods are all on n1 when the drain begins.
  void deploy(const std::string& name, int replicas, const Json& annotations = Json::object(),
              const std::string& kind = "Deployment") {
    Json workload = a_workload(kind, name, replicas, {{"terminationGracePeriodSeconds", 5}},
                               {{"sim.haulout.dev/prefers-node", "n1"}});
    workload["metadata"]["annotations"] = annotations;
    add(workload);
  }
  void start_slowly(Duration time) {
    after(Duration::zero(), [this, time] { cluster.timing().pod_start = time; });
  }
  std::size_t ready_of(const std::string& name) const {
    std::size_t count = 0;
    for (const Json& pod : cluster.all("pods"))
      count += sim::name_of(pod).starts_with(name + "-") && sim::pod_ready(pod) && !sim::terminating(pod) ? 1u : 0u;
    return count;
  }
  // From the start of the drain on, `fewest_` is the smallest number of Ready pods of the workload.
  void watch_ready(const std::string& name) {
    after(Duration::zero(), [this, name] {
      cluster.on_change([this, name](const sim::Change&) { fewest_ = std::min(fewest_, ready_of(name)); });
    });
  }
  // Runs the preflight, which makes the plan of the evictions, and cordons. Then applies `change`, and evicts only
  // after `later`. With several nodes, a node's drain may start that long after its preflight.
  drain::Report drain_after_the_plan(std::function<void()> change, Duration later = std::chrono::minutes(10)) {
    std::optional<drain::Report> report;
    auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn(cluster.run());
      co_await clock.sleep_until(clock.now() + std::chrono::seconds(5));
      k8s::Client client(cluster.api(), clock, {k8s::FieldValidation::strict});
      drain::Drain drain(client, rng, told, options, "n1");
      EXPECT_TRUE(co_await drain.preflight());
      EXPECT_TRUE(co_await drain.cordon());
      change();
      co_await clock.sleep_until(clock.now() + later);
      static_cast<void>(co_await drain.evict());
      report = drain.report();
    };
    run(with_task_group(body));
    return *report;
  }
  std::string parked_with(const std::string& reason) const {
    for (const auto& entry : told.entries)
      if (entry.type == drain::EventType::parked && entry.reason == reason) return entry.pod;
    return {};
  }
  std::size_t asked_for_controllers() const {
    std::size_t asked = 0;
    for (const char* resource : {"deployments", "replicasets", "statefulsets"})
      asked += requests("get", resource).size() + requests("get", resource, "scale").size();
    for (const char* verb : {"list", "watch"})
      for (const auto& entry : requests(verb, "pods")) asked += entry.query.find("nodeName") == std::string::npos;
    return asked;
  }

  std::size_t fewest_ = 1000;
};

}  // namespace haulout::scenario
