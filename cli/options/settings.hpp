// What the command line of `haulout` sets, as plain data: one struct for all commands. The defaults of a drain are
// those of `kubectl drain` (drain/options.hpp).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "agent/process/logging.hpp"
#include "audit/report.hpp"
#include "drain/clean_up.hpp"
#include "drain/options.hpp"
#include "k8s/credentials.hpp"
#include "rehearse/rehearsal.hpp"

namespace haulout::cli {

enum class Command {
  drain,
  cordon,
  uncordon,
  retire,
  status,
  explain,
  pause,
  resume,
  request_reboot,
  release,
  agent,
  rehearse,
  audit,
  migrate,
  fleetlock_serve,
  completion,
  complete_nodes,  // `haulout __complete`: prints names of nodes for shell completion; the help does not show it
  version,
};
enum class OutputFormat { text, wide, json, jsonl, junit, sarif, html };

// Settings of status, explain, pause, resume, request-reboot and release.
struct PeopleSettings {
  bool watch = false;
  bool check_fit = false;
  // If no nodes are given, `pause` and `resume` act on the whole cluster if `all` is set, else on the pool `pool`.
  bool all = false;
  std::string pool;
  std::string reason;
  // When a pause ends (unset: when a person resumes), or when a requested reboot may begin (unset: at once).
  std::optional<std::variant<Duration, WallTime>> time;
};

// Settings of `audit` that `rehearse` does not have. Of RehearseSettings, it uses `config_file`, `snapshots` and
// `assumptions`.
struct AuditSettings {
  std::vector<std::string> team_labels;  // empty: default_team_labels
  bool no_rehearse = false;
  std::int64_t rehearse_at_most = 100;  // how many nodes are rehearsed
  std::string baseline;                 // file with an earlier report, whose findings are known; empty: none
  audit::Severity fail_on = audit::Severity::blocks;
};
inline constexpr const char* default_team_labels[] = {"team", "app.kubernetes.io/part-of"};

// Settings of `rehearse`. Unless `all` is set, `nodes`, `selector` and `drain` of Settings define the drains to
// rehearse.
struct RehearseSettings {
  bool all = false;             // rehearse the update of the whole fleet by its agents
  std::string config_file;      // configuration of the agents; empty: their defaults
  std::string max_unavailable;  // overrides max-unavailable of `config_file`; empty: no override
  std::string ramp;             // overrides ramp of `config_file`; empty: no override
  // --compare: the option of the agents, and its values, with each of which the fleet is rehearsed; empty: no
  // comparison
  std::string compared_option;
  std::vector<std::string> compared_values;
  bool plan = false;  // find the fastest setting that harms no workload
  // How long a reboot is assumed to take; unset: the default of rehearse::FleetInput.
  std::optional<Duration> reboot_time;
  std::vector<std::string> drain_flags;  // names of the given flags that are allowed only without --all
  // Paths of snapshot files, "-" is stdin; empty: read the snapshot from the API server
  std::vector<std::string> snapshots;
  rehearse::Assumptions assumptions;
};

// Settings of `retire` that a drain does not have. All but the first apply only with `local`.
struct RetireSettings {
  bool local = false;        // retire the node of this machine, and clean up the machine
  bool no_cleanup = false;   // run no clean-up program
  bool limit_given = false;  // --cleanup-timeout was given
  drain::CleanUpOptions clean_up;
  std::string server;                         // URL of the API server, for messages
  std::vector<std::string> connection_files;  // what the connection needs on this machine (k8s::files_of)
};

// Where `migrate kured` looks for kured's DaemonSet, unless the flags say otherwise: names of kured's own manifest.
inline constexpr const char* default_kured_namespace = "kube-system";
inline constexpr const char* default_kured_name = "kured";

// Settings of `migrate`.
struct MigrateSettings {
  std::string file;                       // manifest or values of the chart, "-" is stdin; empty: read the DaemonSet
  std::string name = default_kured_name;  // of the DaemonSet
  bool hold_lock = false;                 // take kured's lock, and do nothing else
  bool release_lock = false;              // give it back
};

// Settings of `fleetlock-serve`.
struct FleetLockSettings {
  std::string listen = "127.0.0.1:8080";  // address and port
  std::vector<std::string> pools;         // empty: the pool `default`
  std::int64_t max_unavailable = 1;       // of each pool
};

struct Settings {
  Command command = Command::drain;
  k8s::ConnectionFlags connection;
  std::optional<Duration> request_timeout;  // longest time for one request; unset: each operation has its own limit
  std::vector<std::string> nodes;           // names of the nodes to act on, without duplicates, in the order given
  std::string selector;                     // label selector of the nodes to act on, instead of `nodes`
  bool selects = false;                     // --selector was given, even if it is empty
  bool in_a_pod = false;                    // the credential is that of the pod in which this process runs
  drain::Options drain = drain::kubectl_defaults();  // for `retire`, default_settings() has other defaults
  bool settle_given = false;  // --settle was given; otherwise its default is at most half of --timeout
  PeopleSettings people;
  RehearseSettings rehearse;
  AuditSettings audit;
  RetireSettings retire;
  MigrateSettings migrate;
  FleetLockSettings fleetlock;
  std::int64_t parallel = 1;  // how many nodes `drain` and `retire` drain at the same time
  std::string timeline;       // file to which the chart of a drain is written; empty: no chart
  OutputFormat output = OutputFormat::text;
  bool warnings_as_errors = false;  // if the server sends a warning, a successful command exits as failed
  unsigned verbosity = 0;
  agent::LogFormat log_format = agent::LogFormat::text;
  // The flags that were given to `agent`, as names and values. load_config() merges them with the file and the
  // environment.
  std::vector<std::pair<std::string, std::string>> agent_options;

  // Returns the namespace of Haulout's ConfigMap and Leases: the value of -n, or the agent's default. The namespace of
  // the kubeconfig is not used, because it is chosen for the user's other commands.
  std::string haulout_namespace() const { return connection.ns.empty() ? agent::AgentConfig().ns : connection.ns; }
};

// Returns the settings of the command before any flag is applied.
inline Settings default_settings(Command command) {
  Settings settings;
  settings.command = command;
  if (command == Command::retire) settings.drain = drain::retire_defaults();
  return settings;
}

}  // namespace haulout::cli
