// What every state of the agent uses: ports, options, the current record, the view of the Node, the writer of the Node
// and the activity. A state gets everything else through its own constructor.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "agent/lifecycle/activity.hpp"
#include "agent/lifecycle/agent.hpp"
#include "agent/lifecycle/node_view.hpp"
#include "agent/node/record.hpp"
#include "k8s/client.hpp"

namespace haulout::agent {

class NodeWriter;

// Time limit of one request to the API server or to the machine.
inline constexpr Duration request_timeout = std::chrono::seconds(30);
// The longest time between two requests for something that has no watch.
inline constexpr Duration look_interval = std::chrono::seconds(10);
// Backoff for steps that must succeed eventually.
inline constexpr BackoffOptions patience{std::chrono::milliseconds(500), 2.0, std::chrono::seconds(30),
                                         BackoffOptions::Jitter::equal};
// Backoff for a request whose answer the update waits for.
inline constexpr BackoffOptions eager_patience{std::chrono::seconds(1), 2.0, std::chrono::seconds(30),
                                               BackoffOptions::Jitter::equal};

// All members are borrowed and must outlive every state.
struct Context {
  const AgentParts& parts;
  const AgentOptions& options;
  k8s::Client& client;
  Clock& clock;
  Rng& rng;
  Record& record;  // a state changes it, and the writer shows it
  Activity& activity;
  NodeView& view;
  NodeWriter& writer;

  const k8s::Node& node() const { return view.node(); }
  // The machine has booted since the record was written.
  bool rebooted() const { return record.boot_id != view.boot_id(); }

  TimePoint now() const { return clock.now(); }
  WallTime wall() const { return clock.wall_now(); }
  TimePoint within(Duration limit) const { return now() + limit; }
  // Converts wall time to a deadline that is at most `at_most` away, because the wall clock may have jumped.
  TimePoint at(WallTime when, Duration at_most) const {
    const auto left = std::chrono::duration_cast<Duration>(when - wall());
    return now() + std::clamp(left, Duration::zero(), at_most);
  }
  boost::asio::awaitable<void> pause(Duration time) const { return clock.sleep_until(within(time)); }
  // The id of a new run.
  std::string new_run() const { return fmt::format("{}.{:x}", options.node, wall().time_since_epoch().count()); }
};

}  // namespace haulout::agent
