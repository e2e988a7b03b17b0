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

#include "agent/backend.hpp"
#include "agent/host.hpp"
#include "agent/lifecycle/advance.hpp"
#include "agent/lifecycle/node_status.hpp"
#include "agent/slots.hpp"
#include "drain/drain.hpp"
#include "k8s/client.hpp"
#include "k8s/reflector.hpp"
#include "retry/backoff.hpp"
#include "retry/notifier.hpp"
#include "retry/rng.hpp"
#include "retry/task_group.hpp"

namespace haulout::agent {

struct GateAnswer {
  bool open = true;
  std::string reason{};   // CamelCase: OutsideWindow, Paused, …
  std::string message{};  // plain words
  std::optional<WallTime> look_again{};
  bool brake = false;  // a reboot would be a loop: only a person may go on
};
// Pure; asked before a turn is sought and again once it is taken.
using CheckGates =
    std::function<GateAnswer(const k8s::Node& node, const Record& record, const Pending& pending, WallTime now)>;

struct AgentOptions {
  std::string node;
  drain::Options drain;  // run_id, cordoned_by and restore_cordon_on_failure are the agent's own
  LifecycleTimes times;
};

struct AgentParts {
  k8s::Client& client;
  Rng& rng;
  Host& host;
  Backend& backend;
  Slots& slots;
  CheckGates gates;
  drain::DrainObserver& drain_observer;
  // Each change of state, reason or message, after it was written.
  std::function<void(const Status&)> tell;
  // The UID of our Node, each time that it has been looked up and before anything is asked in its name: it changes under
  // a living agent when somebody deletes the Node and the kubelet registers anew.
  std::function<void(const std::string& uid)> node_is = [](const std::string&) {};
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
