// Fixture for the commands that people use to inspect and control agents. They run against a simulated cluster with
// three nodes, in virtual time.
#pragma once

#include "cli/people/people_job.hpp"
#include "tests/cli/command_fixture.hpp"

namespace haulout::cli {

class PeopleTest : public CommandTest {
 protected:
  PeopleTest() {
    for (const char* name : {"n1", "n2", "n3"}) add_node(name);
    add({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "haulout"}}}});
  }
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

  // Runs a command until it ends, or until a signal arrives after `interrupt`. Returns the exit code. The output of
  // both streams is kept until the next command.
  int command(const std::vector<std::string>& args, std::optional<Duration> interrupt = std::nullopt) {
    text.text.clear();
    errors.text.clear();
    out.text.clear();
    agent::FdSink none(-1);
    agent::Process process{context.get_executor(), own_clock, rng, none, none, {}, "haulout"};
    const auto job = make_people_job(process, tools(), settings_of(args));
    return run_job(*job, {.interrupt = interrupt});
  }
};

}  // namespace haulout::cli
