// Fixture that runs a command of the program beside a simulated cluster, in virtual time, and keeps its output. Owns
// the cluster, the client and the output.
#pragma once

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/options/command_line.hpp"
#include "cli/program/program.hpp"
#include "retry/task_group.hpp"
#include "tests/scenario/skewed_clock.hpp"
#include "tests/support/test_cluster.hpp"
#include "tests/support/text_sink.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::cli {

using Json = nlohmann::json;

using haulout::testing::TextSink;

class CommandTest : public haulout::testing::VirtualTimeTest {
 protected:
  void add(const Json& object) { ASSERT_TRUE(cluster.load(object.dump())); }

  static Settings settings_of(const std::vector<std::string>& args) {
    auto parsed = parse_command_line("haulout", args);
    if (const auto* immediate = std::get_if<Immediate>(&parsed)) {
      ADD_FAILURE() << immediate->err << immediate->out;
      return {};
    }
    auto settings = std::get<Settings>(std::move(parsed));
    settings.drain.run_id = "test";
    settings.drain.cordoned_by = "jane@desk";
    return settings;
  }
  Tools tools() { return tools(client); }
  Tools tools(k8s::Client& other) { return {other, own_clock, rng, console, out, denied, "haulout"}; }

  struct Course {
    Duration begins{};  // time from the start of the cluster
    Duration lasts = std::chrono::minutes(2);
    std::optional<Duration> interrupt{};  // time from the start of the command to a signal
  };
  // Returns the exit code.
  int run_job(Job& job, Course course) {
    run(beside_cluster(job, course));
    return job.finish(course.interrupt ? std::optional(15) : std::nullopt);
  }

  SeededRng world_rng{1};
  SeededRng rng{2};
  sim::TestCluster cluster{context.get_executor(), clock, world_rng};
  scenario::SkewedClock own_clock{clock};  // clock of the user's machine
  k8s::Client client{cluster.api(), own_clock, {k8s::FieldValidation::strict, 500}};
  TextSink text, errors, out;
  Console console{text, errors};
  agent::DeniedRequest denied;

 private:
  boost::asio::awaitable<void> beside_cluster(Job& job, Course course) {
    const auto body = [&](TaskGroup& group) -> boost::asio::awaitable<void> {
      group.spawn(cluster.run());
      if (course.begins > Duration::zero()) co_await clock.sleep_until(clock.now() + course.begins);
      const auto id = group.spawn(job.run());
      co_await clock.sleep_until(clock.now() + course.interrupt.value_or(course.lasts));
      if (course.interrupt) {
        group.cancel(id);
        co_await job.clean_up();
        co_await clock.sleep_until(clock.now() + std::chrono::seconds(1));
      }
    };
    co_await with_task_group(body);
  }
};

}  // namespace haulout::cli
