// The turns that --slots describes.
#pragma once

#include <memory>

#include "agent/config/option.hpp"
#include "agent/hosts/host_root.hpp"
#include "agent/node/own_node.hpp"
#include "agent/node/own_pool.hpp"
#include "agent/ports/slots.hpp"
#include "agent/slots/slot_rules.hpp"
#include "http/client.hpp"
#include "k8s/client.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// As the Node's labels say now: its pool may change under the agent.
OwnPool own_pool(const AgentConfig& config, const k8s::Node& node);
// The same, and how many nodes of it may be out, for people.
std::string words_of_pool(const AgentConfig& config, const k8s::Node& node);

struct MadeSlots {
  std::unique_ptr<http::Client> client;  // to the FleetLock server; else null
  std::unique_ptr<Slots> slots;
};

// Borrowed; must outlive the slots.
struct SlotsAccess {
  boost::asio::any_io_executor executor;
  k8s::Client& client;
  Rng& rng;
  const HostRoot& root;
  const OwnNode& own;
};

// Makes them without asking anybody. Errc::invalid or Errc::unavailable, naming option and way out, where the
// configuration or the host lacks what a FleetLock server must be told.
Result<MadeSlots> make_slots(const AgentConfig& config, const SlotsAccess& access);

}  // namespace haulout::agent
