// Makes the slots that --slots describes.
#pragma once

#include <memory>

#include "agent/config/agent_config.hpp"
#include "agent/hosts/host_root.hpp"
#include "agent/node/pool.hpp"
#include "agent/ports/slots.hpp"
#include "agent/slots/lease_slots.hpp"
#include "http/client.hpp"
#include "k8s/client.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// Returns the pool of the node according to the configuration and the Node's current labels. The pool may change while
// the agent runs, because labels may change. Pure.
OwnPool own_pool(const AgentConfig& config, const k8s::Node& node);
// Returns the pool's name and how many of its nodes may be unavailable, for messages. Pure.
std::string words_of_pool(const AgentConfig& config, const k8s::Node& node);

// Slots, with the client that they borrow.
struct MadeSlots {
  std::unique_ptr<http::Client> client;  // to the FleetLock server; else null
  std::unique_ptr<Slots> slots;
};

// All references are borrowed and must outlive the slots.
struct SlotsAccess {
  boost::asio::any_io_executor executor;
  k8s::Client& client;
  Rng& rng;
  const HostRoot& root;
  const OwnNode& own;
  // See LeaseSlotsOptions.
  decltype(LeaseSlotsOptions::nodes) nodes{};
  std::optional<Duration> look_every{};
  std::size_t cluster_nodes = 0;
};

// Makes the slots without contacting a server. Fails with Errc::invalid or Errc::unavailable if the configuration or
// the host lacks data that a FleetLock server needs; the error names the option and the remedy.
Result<MadeSlots> make_slots(const AgentConfig& config, const SlotsAccess& access);

}  // namespace haulout::agent
