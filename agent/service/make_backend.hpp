// Makes the back end that the configuration names, or the one that fits this host.
#pragma once

#include <memory>

#include "agent/backends/detect.hpp"
#include "agent/config/agent_config.hpp"
#include "agent/ports/backend.hpp"
#include "agent/service/host_access.hpp"
#include "http/client.hpp"

namespace haulout::agent {

// Finds the back end: by --backend, --sentinel and --sentinel-command if set, otherwise from the host's files. Fails as
// choose_backend() does.
Result<FoundBackend> find_backend(const AgentConfig& config, const HostRoot& root);

struct MadeBackend {
  std::unique_ptr<http::Client> client;  // for a back end that uses HTTP; else null
  std::unique_ptr<Backend> backend;
};

// Makes the back end without a request to it; only Backend::pending() shows whether it answers. Fails with
// Errc::unavailable, with the file and the remedy, if the host's files cannot be read. The back end borrows from
// `host`.
Result<MadeBackend> make_backend(const AgentConfig& config, const FoundBackend& found, const HostAccess& host);

}  // namespace haulout::agent
