// Makes the parts of the agent that access the host: the Host that --reboot-method describes, the runner of the hooks,
// the back end that the configuration names, or the one that fits this host, and the updater of --update.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "agent/backends/detect.hpp"
#include "agent/config/agent_config.hpp"
#include "agent/dbus/bus.hpp"
#include "agent/hooks/hooks.hpp"
#include "agent/hosts/host_programs.hpp"
#include "agent/hosts/host_root.hpp"
#include "agent/ports/backend.hpp"
#include "agent/ports/host.hpp"
#include "agent/ports/updater.hpp"
#include "http/client.hpp"
#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// What every part that accesses the host needs. The members are borrowed and must outlive the parts made from them.
struct HostAccess {
  boost::asio::any_io_executor executor;
  Clock& clock;
  Rng& rng;
  const HostRoot& root;
  Bus& bus;  // the caller runs it if uses_bus() is true
};

// Makes the Host without a request to it; only Host::can_reboot() shows whether a reboot is permitted. Precondition:
// read_config() has accepted `config`. The Host borrows from `host`.
std::unique_ptr<Host> make_host(const AgentConfig& config, const HostAccess& host);

// Makes the runner of the hooks: as transient units if the host runs systemd, otherwise as child processes of the
// agent. Fails as HostRoot does.
Result<std::unique_ptr<HookPrograms>> make_hooks(const AgentConfig& config, const HostAccess& host);

// Returns true if a part that this configuration and this back end (such as "flatcar") need on this host uses D-Bus.
// Then the caller must run the bus.
bool uses_bus(const AgentConfig& config, std::string_view backend, const HostRoot& root);

// Finds the back end: by --backend, --sentinel and --sentinel-command if set, otherwise from the host's files. Fails as
// choose_backend() does.
Result<FoundBackend> find_backend(const AgentConfig& config, const HostRoot& root);

// A back end, with the client or the runner of programs that it borrows.
struct MadeBackend {
  std::unique_ptr<http::Client> client;    // for a back end that uses HTTP; else null
  std::unique_ptr<HostPrograms> programs;  // for a back end that runs programs of the host; else null
  std::unique_ptr<Backend> backend;
};

// Makes the back end without a request to it; only Backend::pending() shows whether it answers. Fails with
// Errc::unavailable, with the file and the remedy, if the host's files cannot be read. The back end borrows from
// `host`.
Result<MadeBackend> make_backend(const AgentConfig& config, const FoundBackend& found, const HostAccess& host);

// An updater, with the runner of programs that it borrows.
struct MadeUpdater {
  std::unique_ptr<HostPrograms> programs;  // runs the programs of the updater; null if it has none (Flatcar)
  std::unique_ptr<Updater> updater;        // null if --update is off
};

// Makes the updater for this back end: its programs run as transient units if the host runs systemd, otherwise as child
// processes of the agent. Fails with Errc::invalid if no updater exists for the back end, or if it cannot do what the
// options say, otherwise as HostRoot does. The updater borrows `backend`, and from `host`.
Result<MadeUpdater> make_updater(const AgentConfig& config, const FoundBackend& found, const HostAccess& host,
                                 Backend& backend);

}  // namespace haulout::agent
