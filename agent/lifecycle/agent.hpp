// The agent of one node: takes it through its updates, for ever. A thin driver over the table of states: it establishes
// the duties of its state, waits for what decides there, writes the next record, and goes on.
//
// run() returns only by cancellation, and then writes nothing: cordon, marks and turn stay for the successor, who goes
// on from what the Node, the turn and the boot id say. It never fails: an API server that is away is waited for.
// Borrows all its parts. One thread.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "agent/gates/gate_keeper.hpp"
#include "agent/hooks/hook_annotations.hpp"
#include "agent/hooks/hook_programs.hpp"
#include "agent/lifecycle/advance.hpp"
#include "agent/node/node_status.hpp"
#include "agent/ports/backend.hpp"
#include "agent/ports/host.hpp"
#include "agent/ports/shutdown_delay.hpp"
#include "agent/ports/slots.hpp"
#include "drain/drain.hpp"
#include "k8s/client.hpp"
#include "k8s/reflector.hpp"
#include "retry/backoff.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"
#include "retry/task_group.hpp"

namespace haulout::agent {

struct AgentOptions {
  std::string node;
  drain::Options drain;  // run_id, cordoned_by and restore_cordon_on_failure are the agent's own
  LifecycleTimes times;
  HookRules hooks;
  // How long load balancers have, from the cordon to the first eviction, to stop sending traffic; 0: they are left
  // alone.
  Duration lb_drain_wait{};
  std::string authority{};  // for the record
  // For the record and the label haulout.dev/pool; empty: the label is somebody else's.
  std::function<std::string(const k8s::Node&)> pool = [](const k8s::Node&) { return std::string(); };
};

struct AgentParts {
  k8s::Client& client;
  Rng& rng;
  Host& host;
  Backend& backend;
  Slots& slots;
  GateKeeper& gates;
  drain::DrainObserver& drain_observer;
  // Each change of state, reason or message, after it was written.
  std::function<void(const Status&)> tell;
  HookPrograms* hooks = nullptr;  // null: no executables are run
  // What went wrong and holds nothing up: for the log and an Event, not for the Node. May be empty.
  std::function<void(const Status&)> warn{};
  // The UID of our Node, each time that it has been looked up and before anything is asked in its name: it changes
  // under a living agent when somebody deletes the Node and the kubelet registers anew.
  std::function<void(const std::string& uid)> node_is = [](const std::string&) {};
  // Null: a machine that somebody else shuts down goes down at once.
  ShutdownDelay* shutdown = nullptr;
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
