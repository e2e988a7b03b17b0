// drain, cordon and uncordon against a simulated cluster of two nodes, in virtual time.
#pragma once

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "agent/command_line.hpp"
#include "agent/cordon_job.hpp"
#include "agent/drain_job.hpp"
#include "retry/task_group.hpp"
#include "sim/cluster.hpp"
#include "sim/faults.hpp"
#include "tests/support/text_sink.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {

using Json = nlohmann::json;

using haulout::testing::TextSink;

class JobsTest : public haulout::testing::VirtualTimeTest {
 protected:
  JobsTest() {
    for (const char* name : {"n1", "n2"})
      add({{"apiVersion", "v1"},
           {"kind", "Node"},
           {"metadata", {{"name", name}, {"labels", {{"pool", "old"}}}}},
           {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }
  void add(const Json& object) { ASSERT_TRUE(cluster.load(object.dump())); }
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
  static Settings settings_of(const std::vector<std::string>& args) {
    auto settings = std::get<Settings>(parse_command_line("haulout", args));
    settings.drain.run_id = "test";
    settings.drain.cordoned_by = "jane@desk";
    return settings;
  }
  Tools tools() { return tools(client); }
  Tools tools(k8s::Client& other) { return {other, clock, rng, console, out, ledger, "haulout"}; }

  // To its end, or to `interrupt` after that time.
  int run_job(Job& job, std::optional<Duration> interrupt = std::nullopt) {
    run(beside_cluster(job, interrupt));
    return job.finish(interrupt ? std::optional(15) : std::nullopt);
  }
  boost::asio::awaitable<void> beside_cluster(Job& job, std::optional<Duration> interrupt) {
    const auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn(cluster.run());
      co_await clock.sleep_until(clock.now() + std::chrono::seconds(1));
      const auto id = group.spawn(job.run());
      if (interrupt) {
        co_await clock.sleep_until(clock.now() + *interrupt);
        group.cancel(id);
        co_await clock.sleep_until(clock.now() + std::chrono::seconds(1));
      } else {
        co_await clock.sleep_until(clock.now() + std::chrono::minutes(10));
      }
    };
    co_await with_task_group(body);
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

  SeededRng world_rng{1};
  SeededRng rng{2};
  sim::Cluster cluster{context.get_executor(), clock, world_rng};
  k8s::Client client{cluster.api(), clock, {k8s::FieldValidation::strict, 500}};
  TextSink text, errors, out;
  Console console{text, errors};
  RequestLedger ledger;
};

}  // namespace haulout::agent
