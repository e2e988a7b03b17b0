// Makes the back end that the configuration names, or the one that fits this host.
#pragma once

#include <memory>

#include "agent/backends/detect.hpp"
#include "agent/config/agent_config.hpp"
#include "agent/ports/backend.hpp"
#include "agent/service/host_access.hpp"
#include "http/client.hpp"

namespace haulout::agent {

// Uses --backend, --sentinel and --sentinel-command if set, and otherwise detects the back end from the host's files.
// Errors: see choose_backend().
Result<FoundBackend> find_backend(const AgentConfig& config, const HostRoot& root);

struct MadeBackend {
  std::unique_ptr<http::Client> client;  // for a back end that uses HTTP; else null
  std::unique_ptr<Backend> backend;
};

// Makes the back end without asking it anything; only Backend::pending() shows whether it answers. Errc::unavailable,
// with the file and the remedy, if the host's files cannot be read. The back end borrows from `host`.
Result<MadeBackend> make_backend(const AgentConfig& config, const FoundBackend& found, const HostAccess& host);

}  // namespace haulout::agent
