// The agent of one node: takes the node through its updates, without end. It drives the table of states: it establishes
// the duties of the current state, waits for an event, writes the next record, and starts again.
//
// run() returns only when it is cancelled, and writes nothing then. The cordon, the marks and the slot stay for the
// next process, which continues from the Node, the slot and the boot id. run() never fails; it waits while the API
// server is unavailable. The agent borrows all its parts. One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "agent/gates/gate_keeper.hpp"
#include "agent/hooks/hooks.hpp"
#include "agent/lifecycle/advance.hpp"
#include "agent/node/node_status.hpp"
#include "agent/node/readiness.hpp"
#include "agent/node/waiting_taint.hpp"
#include "agent/ports/backend.hpp"
#include "agent/ports/host.hpp"
#include "agent/ports/slots.hpp"
#include "agent/ports/updater.hpp"
#include "drain/drain.hpp"
#include "k8s/client.hpp"
#include "k8s/reflector.hpp"
#include "retry/backoff.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"
#include "retry/task_group.hpp"

namespace haulout::agent {

// Returns AgentOptions::spread for a cluster with so many Nodes: 15 ms for each, at most 30 s. Zero for less than fifty
// Nodes, and if their number is not known (0).
Duration spread_of(std::size_t cluster_nodes);

struct AgentOptions {
  std::string node;
  drain::Options drain;  // the agent sets run_id, cordoned_by, pinned_controllers, restore_cordon_on_failure itself
  LifecycleTimes times;
  unsigned update_attempts = default_update_attempts;
  // The updater writes an image that only the next boot runs, and does so before the drain (--update=before-drain).
  bool stages_first = false;
  // Slots depend on the version (--ramp, --halt-after): a node uses its slot only for the version for which it has
  // taken it.
  bool ramp = false;
  HookRules hooks;
  bool hold_autoscalers = true;               // see hold_duty()
  std::optional<WaitingTaint> waiting_taint;  // see waiting_taint_duty()
  std::vector<WantedCondition> conditions;    // what the Node must show after a boot or an installation
  // Time between the cordon and the first eviction in which load balancers can stop sending traffic. With 0 the agent
  // does not change the node's membership in load balancers.
  Duration lb_drain_wait{};
  // A node that needs a reboot waits for a random time, at most this long, before its agent asks the gates and then for
  // a slot; also each time that closed gates may have opened. So the agents of a large cluster do not send these
  // requests in the same second when a window opens. A reboot that a person requests does not wait.
  Duration spread{};
  std::string authority{};  // written into the record
  // Returns the pool for the record and the label haulout.dev/pool; empty if the agent must not write the label.
  std::function<std::string(const k8s::Node&)> pool = [](const k8s::Node&) { return std::string(); };
};

// What the agent works with. It borrows all references and pointers, and what the functions refer to.
struct AgentParts {
  k8s::Client& client;
  Rng& rng;
  Host& host;
  Backend& backend;
  Slots& slots;
  GateKeeper& gates;
  drain::DrainObserver& drain_observer;
  // Called after each write that changed state, reason or message. Also called after the record was loaded, and when
  // the Node cannot be read or written.
  std::function<void(const Status&)> tell;
  HookPrograms* hooks = nullptr;  // null: the agent runs no executables
  // Called with problems that do not delay the update; they are logged and become an Event, but are not shown on the
  // Node. May be empty.
  std::function<void(const Status&)> warn{};
  // Called with the UID of the agent's Node after each time that the agent has read it as a whole, and before any
  // request that uses the UID. The UID changes if the Node is deleted and the kubelet registers again while the agent
  // runs.
  std::function<void(const std::string& uid)> node_is = [](const std::string&) {};
  // If null, the agent cannot delay a shutdown that another program requests.
  ShutdownDelay* shutdown = nullptr;
  // If null, the agent installs no updates (--update=off).
  Updater* updater = nullptr;
  // Called with the Node and its record after the record was loaded, after each write of it, and when the agent has
  // found that the Node shows it already.
  std::function<void(const k8s::Node&, const Record&)> recorded = [](const k8s::Node&, const Record&) {};
};

class Agent {
 public:
  Agent(AgentParts parts, AgentOptions options);
  ~Agent();
  boost::asio::awaitable<void> run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace haulout::agent
