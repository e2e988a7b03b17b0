// The back end that the configuration names, or that this host has.
#pragma once

#include <memory>

#include "agent/backends/detect.hpp"
#include "agent/config/option.hpp"
#include "agent/ports/backend.hpp"
#include "agent/service/host_access.hpp"
#include "http/client.hpp"

namespace haulout::agent {

// What --backend, --sentinel and --sentinel-command say, else what is found on the host. Errors: see choose_backend.
Result<FoundBackend> find_backend(const AgentConfig& config, const HostRoot& root);

struct MadeBackend {
  std::unique_ptr<http::Client> client;  // of a back end that is asked over HTTP; else null
  std::unique_ptr<Backend> backend;
};

// Makes it without asking it anything: whether it answers is seen by Backend::pending. Errc::unavailable, naming file
// and way out, when the host's files cannot be read.
Result<MadeBackend> make_backend(const AgentConfig& config, const FoundBackend& found, const HostAccess& host);

}  // namespace haulout::agent
