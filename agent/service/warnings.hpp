// What the agent warns about, in its log at the start and in the output of --check: settings that are allowed but may
// not have the effect that their author expects (cautions), and other programs that reboot this machine (rivals).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "agent/hosts/host_root.hpp"
#include "agent/service/host_parts.hpp"
#include "k8s/client.hpp"

namespace haulout::agent {

// Returns one sentence if all nodes of the pool may be unavailable at once, otherwise nothing. `nodes` is the size of
// the pool; nothing if it is unknown. Pure.
std::optional<std::string> whole_pool_caution(const AgentConfig& config, std::optional<std::size_t> nodes);

// Returns one sentence if more nodes would have to fail to halt a roll-out (halt-after) than may be unavailable: a
// degraded node keeps its slot. Nothing for a percentage, which depends on the number of nodes. Pure.
std::optional<std::string> halt_caution(const AgentConfig& config);

// Returns one sentence for each window and each black-out whose dates are all past. Reads zoneinfo.
std::vector<std::string> past_dates(const AgentConfig& config, WallTime now);

// Returns one sentence if unattended-upgrades installs packages on this host although the agent does (--update),
// otherwise nothing. Fails as HostRoot does.
Result<std::optional<std::string>> second_updater(const AgentConfig& config, const HostRoot& root);

struct Cautions {
  std::vector<std::string> config{}, hooks{};  // one sentence each
};

// Checks the size of the pool if it matters, whether another program installs packages, the host's hook directory, and
// the annotations of `node`. A check that cannot read its data returns no warning. Cancellable.
boost::asio::awaitable<Cautions> find_cautions(k8s::Client& client, const AgentConfig& config, const HostRoot& root,
                                               k8s::Node node, TimePoint deadline);

// Returns one sentence for each other program that runs as a pod on the node and reboots it, such as kured or a Plan of
// the system upgrade controller: its name, what it does, how to stop it. Pure.
std::vector<std::string> pod_rivals(const std::vector<k8s::Pod>& pods);
// Returns one sentence if apt's configuration on the host lets unattended-upgrades reboot the machine
// (Unattended-Upgrade::Automatic-Reboot), otherwise nothing. Fails as HostRoot does.
Result<std::vector<std::string>> file_rivals(const HostRoot& root);

struct Rivals {
  std::vector<std::string> found;     // one sentence for each program
  std::vector<std::string> problems;  // one sentence for each check that failed, so that its result is unknown
};

// Checks the host's files, the pods of the node and, if `ask_bus` is true, the bus. Cancellable.
boost::asio::awaitable<Rivals> find_rivals(k8s::Client& client, std::string node, const HostAccess& host, bool ask_bus,
                                           TimePoint deadline);

}  // namespace haulout::agent
