// Detects other programs that reboot this machine, among pods, files and services of the host.
#pragma once

#include <string>
#include <vector>

#include "agent/service/host_access.hpp"
#include "k8s/client.hpp"

namespace haulout::agent {

// Returns one sentence for each other program that runs as a pod on the node and reboots it, such as kured: its name,
// what it does, how to stop it. Pure.
std::vector<std::string> pod_rivals(const std::vector<k8s::Pod>& pods);
// Returns the same for files of the host: unattended-upgrades' Automatic-Reboot. Fails as HostRoot does.
Result<std::vector<std::string>> file_rivals(const HostRoot& root);

struct Rivals {
  std::vector<std::string> found;     // one sentence for each program
  std::vector<std::string> problems;  // one sentence for each check that failed, so that its result is unknown
};

// Checks the host's files, the pods of the node and, if `ask_bus` is true, the bus. Cancellable.
boost::asio::awaitable<Rivals> find_rivals(k8s::Client& client, std::string node, const HostAccess& host, bool ask_bus,
                                           TimePoint deadline);

}  // namespace haulout::agent
