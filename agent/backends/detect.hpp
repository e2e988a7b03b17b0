// Chooses the back end for this host: the one that --backend names, that --sentinel or --sentinel-command implies, or
// that fits /etc/os-release and a few files beneath the host's root. Blocks while it reads files.
#pragma once

#include <string>
#include <vector>

#include "agent/hosts/host_root.hpp"

namespace haulout::agent {

// Returns the values of --backend, sorted.
const std::vector<std::string>& backend_names();

// What the options say about the back end; empty: not given.
struct BackendWish {
  std::string backend{};           // --backend; empty: detect it
  std::string sentinel{};          // --sentinel
  std::string sentinel_command{};  // --sentinel-command
  bool updates = false;  // --update is not off: where two back ends fit, take the one that can install updates
};

// The back end that was chosen.
struct FoundBackend {
  std::string backend;
  std::string sentinel{};  // for the back end "file": the path from --sentinel, or this system's own one
  std::string why{};       // why this back end was chosen, for messages
  bool operator==(const FoundBackend&) const = default;
};

// Returns the back end. Fails with Errc::invalid if a name is not one of backend_names() (the message lists them), or
// if options contradict each other. Fails with Errc::unavailable if no back end fits (the message says what was found
// and which options help), or if the host's files cannot be read.
Result<FoundBackend> choose_backend(const BackendWish& wish, const HostRoot& root);

}  // namespace haulout::agent
