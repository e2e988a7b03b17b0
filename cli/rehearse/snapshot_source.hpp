// Where `haulout rehearse` and `haulout audit` get their snapshot: from files, or from the API server of the
// kubeconfig. Failures are printed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/config/read_config.hpp"
#include "cli/program/program.hpp"
#include "rehearse/snapshot.hpp"

namespace haulout::cli {

// A function that runs a coroutine to completion on the executor of the process and returns its exit code.
using RunToEnd = std::function<int(boost::asio::awaitable<int> program)>;

// What a command wants in its snapshot.
struct SnapshotWish {
  bool directories = false;         // a path may be a directory: all its files *.yaml, *.yml and *.json are read
  std::vector<std::string> more{};  // further kinds to list, see rehearse::read_snapshot()
};

struct SnapshotGot {
  std::optional<rehearse::Snapshot> snapshot;  // unset if it could not be read; the error is printed then
  std::string source;                          // the files, or the URL of the API server
  // With --warnings-as-errors, reading the snapshot may count as failed although there is one.
  int exit_code = 0;
};

// Reads the snapshot that the settings name (--snapshot), or the cluster. Calls `run` only for a cluster.
SnapshotGot get_snapshot(agent::Process& process, Console& console, const Settings& settings, const RunToEnd& run,
                         SnapshotWish wish = {});

// Reads the agents' configuration from the given file, --max-unavailable, --ramp and `more` only. This machine's
// default file and environment do not apply to the agents. If it is invalid, prints the errors and returns nullopt.
std::optional<agent::AgentConfig> config_of(Console& console, const RehearseSettings& settings,
                                            agent::FlagValues more = {});

// Prints the error and returns the exit code.
int failed(Console& console, const Error& error, int code);

}  // namespace haulout::cli
