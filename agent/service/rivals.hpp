// Who else reboots this machine, by all the ways of finding out.
#pragma once

#include <string>
#include <vector>

#include "agent/service/host_access.hpp"
#include "k8s/client.hpp"

namespace haulout::agent {

// One sentence each: who, what it does, how to stop it. Pure: what runs on the node as a pod (kured and its like).
std::vector<std::string> pod_rivals(const std::vector<k8s::Pod>& pods);
// The same from files of the host: unattended-upgrades' Automatic-Reboot. Errors: see HostRoot.
Result<std::vector<std::string>> file_rivals(const HostRoot& root);

struct Rivals {
  std::vector<std::string> found;     // a sentence each
  std::vector<std::string> problems;  // what could not be asked for, so that nobody knows
};

// Asks the host's files, the bus (unless `ask_bus` is false) and the pods of the node. Cancellable.
boost::asio::awaitable<Rivals> find_rivals(k8s::Client& client, std::string node, const HostAccess& host, bool ask_bus,
                                           TimePoint deadline);

}  // namespace haulout::agent
