// All parts of an agent, made from its configuration once it is known which node it serves and with which authority.
//
// Borrows what stands in Surroundings; owns the rest, in an order in which it can be taken apart. Its owner runs the
// bus where uses_bus() says so, with it the shutdown inhibitor, the reporter, the memory and the agent.
#pragma once

#include <memory>

#include "agent/authority/authority.hpp"
#include "agent/authority/node_transport.hpp"
#include "agent/dbus/shutdown_inhibitor.hpp"
#include "agent/gates/node_gates.hpp"
#include "agent/lifecycle/agent.hpp"
#include "agent/process/logging.hpp"
#include "agent/process/process.hpp"
#include "agent/report/reporter.hpp"
#include "agent/service/make_backend.hpp"
#include "agent/service/make_host.hpp"
#include "agent/service/make_slots.hpp"
#include "agent/service/quiet_memory.hpp"
#include "k8s/auth_transport.hpp"

namespace haulout::agent {

struct Surroundings {
  Process& process;
  const AgentConfig& config;
  Log& log;
  http::Transport& api;  // with the agent's own credential, impersonating nobody
  Bus& bus;
};

class AgentWhole {
 public:
  // Errors name what is missing and the way out; is_transient() ones are worth another try.
  static Task<std::unique_ptr<AgentWhole>> make(Surroundings around, Authority authority, TimePoint deadline);

  const Authority& authority() const { return authority_; }
  bool uses_bus() const;
  k8s::Client& client() { return client_; }
  Host& host() { return *host_; }
  Backend& backend() { return *backend_.backend; }
  Slots& slots() { return *slots_.slots; }
  GateKeeper& gates() { return *gates_; }
  HookPrograms& hooks() { return *hooks_; }
  Reporter& reporter() { return reporter_; }
  QuietMemory& memory() { return memory_; }
  // Null where there is no bus.
  ShutdownInhibitor* shutdown() { return shutdown_.get(); }
  HostAccess host_access();
  // Made anew for each call; borrows this.
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
