// The commands of people against a simulated cluster with three nodes, in virtual time.
#pragma once

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "agent/command_line.hpp"
#include "agent/people/people_job.hpp"
#include "retry/task_group.hpp"
#include "sim/cluster.hpp"
#include "tests/scenario/skewed_clock.hpp"
#include "tests/support/text_sink.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::agent {

using Json = nlohmann::json;

using haulout::testing::TextSink;

class PeopleTest : public haulout::testing::VirtualTimeTest {
 protected:
  PeopleTest() {
    for (const char* name : {"n1", "n2", "n3"}) add_node(name);
    add({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "haulout"}}}});
  }
  void add(const Json& object) { ASSERT_TRUE(cluster.load(object.dump())); }
  void add_node(const std::string& name) {
    add({{"apiVersion", "v1"},
         {"kind", "Node"},
         {"metadata", {{"name", name}, {"labels", {{"zone", "a"}}}}},
         {"status",
          {{"nodeInfo", {{"osImage", "Debian 12"}}}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }
  void label(const std::string& node, const std::map<std::string, std::string>& labels) {
    cluster.patch("nodes", "", node, {{"metadata", {{"labels", labels}}}});
  }
  void annotate(const std::string& node, const std::map<std::string, std::string>& annotations) {
    cluster.patch("nodes", "", node, {{"metadata", {{"annotations", annotations}}}});
  }
  void set_state(const std::string& node, const std::string& state, const std::string& reason = "") {
    label(node, {{"haulout.dev/state", state}, {"haulout.dev/reboot-required", state == "idle" ? "false" : "true"}});
    if (!reason.empty()) label(node, {{"haulout.dev/reason", reason}});
  }
  std::string annotation(const std::string& node, const std::string& key) const {
    const Json all = cluster.get("nodes", "", node)["metadata"].value("annotations", Json::object());
    return all.value(key, "<none>");
  }
  std::string entry(const std::string& key) const {
    const Json map = cluster.get("configmaps", "haulout", "haulout");
    return map.is_null() ? "<no ConfigMap>" : map.value("data", Json::object()).value(key, "<none>");
  }

  static Settings settings_of(const std::vector<std::string>& args) {
    auto parsed = parse_command_line("haulout", args);
    if (const auto* immediate = std::get_if<Immediate>(&parsed)) {
      ADD_FAILURE() << immediate->err << immediate->out;
      return {};
    }
    auto settings = std::get<Settings>(parsed);
    settings.drain.cordoned_by = "jane@desk";
    return settings;
  }
  Tools tools() { return {client, own_clock, rng, console, out, ledger, "haulout"}; }

  // What the command says, both streams, forgotten with the next one. Ended by a signal after `interrupt`.
  int command(const std::vector<std::string>& args, std::optional<Duration> interrupt = std::nullopt) {
    text.text.clear();
    errors.text.clear();
    out.text.clear();
    FdSink none(-1);
    Process process{context.get_executor(), own_clock, rng, none, none, {}, "haulout"};
    const auto job = make_people_job(process, tools(), settings_of(args));
    run(beside_cluster(*job, interrupt));
    return job->finish(interrupt ? std::optional(15) : std::nullopt);
  }
  boost::asio::awaitable<void> beside_cluster(Job& job, std::optional<Duration> interrupt) {
    const auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn(cluster.run());
      const auto id = group.spawn(job.run());
      co_await clock.sleep_until(clock.now() + interrupt.value_or(std::chrono::minutes(2)));
      if (interrupt) {
        group.cancel(id);
        co_await clock.sleep_until(clock.now() + std::chrono::seconds(1));
      }
    };
    co_await with_task_group(body);
  }

  SeededRng world_rng{1};
  SeededRng rng{2};
  sim::Cluster cluster{context.get_executor(), clock, world_rng};
  scenario::SkewedClock own_clock{clock};  // of the machine of whoever asks
  k8s::Client client{cluster.api(), own_clock, {k8s::FieldValidation::strict, 500}};
  TextSink text, errors, out;
  Console console{text, errors};
  RequestLedger ledger;
};

}  // namespace haulout::agent
