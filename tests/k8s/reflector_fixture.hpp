// Fixture for a Reflector of the pods of n1, with a scripted transport in virtual time, and functions for the lines of
// a watch. No I/O. Owns all of these.
#pragma once

#include <gmock/gmock.h>

#include "k8s/reflector.hpp"
#include "retry/task_group.hpp"
#include "tests/k8s/fixtures.hpp"
#include "tests/support/scripted_transport.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::k8s {

using Step = haulout::testing::ScriptedTransport::Step;

inline Step bytes(std::string text, Duration after = {}) {
  return {after, Step::Kind::bytes, std::move(text)};
}
inline Step end(Duration after = {}) {
  return {after, Step::Kind::end, {}};
}
inline Step reset(Duration after = {}) {
  return {after, Step::Kind::reset, {}};
}

inline std::string added(const std::string& name, const std::string& uid, const std::string& rv) {
  return fixtures::event("ADDED", fixtures::pod(name, uid, rv)) + "\n";
}
inline std::string modified(const std::string& name, const std::string& uid, const std::string& rv) {
  return fixtures::event("MODIFIED", fixtures::pod(name, uid, rv)) + "\n";
}
inline std::string deleted(const std::string& name, const std::string& uid, const std::string& rv) {
  return fixtures::event("DELETED", fixtures::pod(name, uid, rv)) + "\n";
}

class ReflectorTest : public haulout::testing::VirtualTimeTest {
 protected:
  haulout::testing::ScriptedTransport transport{clock};
  Client client{transport, clock, {.most_memory = 1'000'000}};
  SeededRng rng{7};
  std::vector<std::string> changes;
  unsigned batches = 0;
  Duration gathering{};
  std::optional<Result<>> ended;
  std::optional<Duration> look_again_at;     // when the test calls look_again() while the watch is open
  std::optional<Result<bool>> looked_again;  // what that call returned
  Reflector<Pod> reflector{
      client,
      rng,
      {.field_selector = "spec.nodeName=n1", .gather_until = [this] { return clock.now() + gathering; }},
      [this](const std::string& uid, const Pod* pod) {
        changes.push_back(pod ? "+" + uid + "@" + pod->resource_version : "-" + uid);
      },
      [this] { ++batches; }};

  void answer_list(const std::string& rv, const std::vector<std::string>& pods, Duration delay = {}) {
    std::string items;
    for (const auto& pod : pods) items += (items.empty() ? "" : ",") + pod;
    transport.answer(haulout::testing::json_response(200, fixtures::list("PodList", rv, items)), delay);
  }
  // Prepares a watch that delivers nothing until it is closed.
  void answer_silence() { transport.stream({}); }

  void run_for(Duration duration) {
    const auto until = start + duration;
    run(with_task_group([this, until](TaskGroup& group) { return body(group, until); }));
    EXPECT_EQ(transport.open_streams(), 0u);
  }
  Duration asked_at(const haulout::testing::ScriptedTransport::Recorded& request) const { return request.at - start; }

 private:
  boost::asio::awaitable<void> body(TaskGroup& group, TimePoint until) {
    group.spawn(child());
    if (look_again_at) {
      co_await clock.sleep_until(start + *look_again_at);
      looked_again = co_await reflector.look_again();
    }
    co_await clock.sleep_until(until);
  }
  boost::asio::awaitable<void> child() { ended = co_await reflector.run(); }
};

}  // namespace haulout::k8s
