// All parts of an agent. They are made from its configuration, once its node and its authority are known.
//
// Borrows what is in Surroundings and owns all other parts, in an order in which they can be destroyed. The caller runs
// the reporter, the QuietMemory and the agent. If uses_bus() is true, the caller also runs the bus and the shutdown
// inhibitor.
#pragma once

#include <memory>

#include "agent/authority/authority.hpp"
#include "agent/dbus/logind.hpp"
#include "agent/gates/node_gates.hpp"
#include "agent/lifecycle/agent.hpp"
#include "agent/process/logging.hpp"
#include "agent/process/process.hpp"
#include "agent/report/reporter.hpp"
#include "agent/service/host_parts.hpp"
#include "agent/service/make_slots.hpp"
#include "agent/service/quiet_memory.hpp"
#include "k8s/auth_transport.hpp"

namespace haulout::agent {

struct Surroundings {
  Process& process;
  const AgentConfig& config;
  Log& log;
  http::Transport& api;  // authenticated by the agent's own credential, without impersonation
  Bus& bus;
};

class AgentWhole {
 public:
  // Makes all parts. Fails with errors that name what is missing and the remedy. If is_transient() is true for an
  // error, the caller may retry. Cancellable.
  static Task<std::unique_ptr<AgentWhole>> make(Surroundings around, Authority authority, TimePoint deadline);

  const Authority& authority() const { return authority_; }
  bool uses_bus() const;
  k8s::Client& client() { return client_; }
  Host& host() { return *host_; }
  Backend& backend() { return *backend_.backend; }
  // Returns null if the agent installs no updates.
  Updater* updater() { return updater_.updater.get(); }
  Slots& slots() { return *slots_.slots; }
  GateKeeper& gates() { return *gates_; }
  HookPrograms& hooks() { return *hooks_; }
  Reporter& reporter() { return reporter_; }
  QuietMemory& memory() { return memory_; }
  // Returns null if the agent uses no bus.
  ShutdownInhibitor* shutdown() { return shutdown_.get(); }
  HostAccess host_access();
  // Makes a new agent for each call. The agent borrows this object.
  std::unique_ptr<Agent> agent();

 private:
  AgentWhole(Surroundings around, Authority authority);
  Task<> assemble(TimePoint deadline);
  ReporterParts reporter_parts();
  AgentOptions options() const;

  Surroundings around_;
  Authority authority_;
  NodeTransport transport_;
  k8s::Client client_;
  Reporter reporter_;
  QuietMemory memory_;
  HostRoot root_;
  MadeBackend backend_;
  MadeUpdater updater_;
  std::unique_ptr<Host> host_;
  std::unique_ptr<HookPrograms> hooks_;
  std::unique_ptr<ShutdownInhibitor> shutdown_;
  MadeSlots slots_;
  std::unique_ptr<k8s::AuthTransport> prometheus_;
  std::unique_ptr<NodeGates> gates_;
  std::unique_ptr<ObservedBackend> observed_backend_;
  std::unique_ptr<ObservedSlots> observed_slots_;
};

}  // namespace haulout::agent
