// `haulout demo-cluster`: a simulated cluster served on loopback in real time, for ./dev demo and for trying things
// out.
//
// Loads a world of ordinary Kubernetes objects, lets it come to rest (every pod that can be scheduled is), writes a
// kubeconfig for it and serves until SIGINT or SIGTERM. Plain HTTP, no authentication: it listens on loopback only.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace haulout::agent {

struct DemoOptions {
  std::string listen = "127.0.0.1:0";
  std::string kubeconfig;
  std::string world;
  std::uint64_t seed = 1;
};

// `args` without program and command. An exit code when there is nothing to run: help, or wrong usage.
std::variant<DemoOptions, int> parse_demo_cluster(const std::vector<std::string>& args);
// Exit code 0: ended by a signal; 1: world, address or kubeconfig unusable.
boost::asio::awaitable<int> serve_demo_cluster(boost::asio::any_io_executor executor, DemoOptions options);

}  // namespace haulout::agent
