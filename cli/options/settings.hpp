// The settings that the command line of `haulout` gives, as plain data: one struct for every command. The defaults of a
// drain are those of `kubectl drain` (drain/options.hpp).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/config/agent_config.hpp"
#include "agent/process/logging.hpp"
#include "drain/options.hpp"
#include "k8s/credentials.hpp"
#include "rehearse/rehearsal.hpp"

namespace haulout::cli {

enum class Command {
  drain,
  cordon,
  uncordon,
  status,
  explain,
  pause,
  resume,
  request_reboot,
  agent,
  rehearse,
  completion,
  complete_nodes,  // `haulout __complete`, hidden from the help; prints names of nodes for the completion of a shell
  version,
};
enum class OutputFormat { text, wide, json, jsonl };

// Settings of the commands that show and control a fleet.
struct PeopleSettings {
  bool watch = false;
  bool check_fit = false;
  // What `pause` and `resume` act on, if no nodes are given: the whole cluster if `all` is set, else the pool `pool`.
  bool all = false;
  std::string pool;
  std::string reason;
  std::optional<std::variant<Duration, WallTime>> until;  // when a pause ends; unset: it lasts until a person resumes
};

// Settings of `rehearse`. Unless `all` is set, `nodes`, `selector` and `drain` of Settings say what to drain and how.
struct RehearseSettings {
  bool all = false;             // rehearse the update of the whole fleet by its agents
  std::string config_file;      // configuration of the agents; empty: their defaults
  std::string max_unavailable;  // overrides max-unavailable of `config_file`; empty: no override
  // How long a reboot is assumed to take; unset: the default of rehearse::FleetInput.
  std::optional<Duration> reboot_time;
  std::vector<std::string> drain_flags;  // names of the given flags that apply only to a single drain
  std::vector<std::string> snapshots;    // paths of snapshot files, "-" is stdin; empty: read the cluster
  rehearse::Assumptions assumptions;
};

struct Settings {
  Command command = Command::drain;
  k8s::ConnectionFlags connection;
  std::optional<Duration> request_timeout;  // longest time for one request; unset: each operation has its own limit
  std::vector<std::string> nodes;           // names of the nodes to act on, without duplicates, in the order given
  std::string selector;                     // label selector of the nodes to act on, instead of `nodes`
  bool selects = false;                     // --selector was given, even if it is empty
  bool in_a_pod = false;                    // the credential belongs to the pod in which this process runs
  drain::Options drain = drain::kubectl_defaults();
  bool settle_given = false;  // --settle was given; otherwise --timeout limits its default
  PeopleSettings people;
  RehearseSettings rehearse;
  std::string timeline;  // file to which the chart of a drain is written; empty: no chart
  OutputFormat output = OutputFormat::text;
  bool warnings_as_errors = false;  // a warning of the server turns success into failure
  unsigned verbosity = 0;
  agent::LogFormat log_format = agent::LogFormat::text;
  // The flags that were given to `agent`, as names and values; load_config() merges them with the other sources.
  std::vector<std::pair<std::string, std::string>> agent_options;

  // The namespace of Haulout's ConfigMap and Leases: -n, or the agent's default. The namespace of the kubeconfig is not
  // used, because it belongs to the user's own work.
  std::string haulout_namespace() const { return connection.ns.empty() ? agent::AgentConfig().ns : connection.ns; }
};

}  // namespace haulout::cli
