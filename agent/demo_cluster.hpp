// `haulout demo-cluster`: a simulated cluster served on loopback in real time, for ./dev demo and for trying
// things out.
//
// Loads a world of ordinary Kubernetes objects, lets it come to rest (every pod that can be scheduled is), writes a
// kubeconfig for it and serves until SIGINT or SIGTERM. Plain HTTP, no authentication: it listens on loopback only.
//
// With --machines its Nodes have machines (agent/demo_machines.hpp), real agents may take them through an update, and a
// judge writes whether that kept what Haulout promises (agent/demo_judge.hpp).
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

namespace haulout::agent {

// `args` without program and command. Returns the exit code: 0 ended by a signal, 1 world or address unusable, or
// a promise broken or not shown to be kept, 2 usage.
boost::asio::awaitable<int> run_demo_cluster(boost::asio::any_io_executor executor, std::vector<std::string> args);

}  // namespace haulout::agent
