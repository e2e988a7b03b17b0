// What the command line asks for, as plain data. The defaults of a drain are those of `kubectl drain`.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/process/logging.hpp"
#include "drain/options.hpp"
#include "k8s/credentials.hpp"

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
  complete_nodes,  // hidden; prints the names of nodes for the completion of a shell
  version,
};
enum class OutputFormat { text, wide, json, jsonl };

// Settings of the commands that show and control a fleet.
struct PeopleSettings {
  bool watch = false;
  bool check_fit = false;
  // The target of `pause` and `resume`, unless nodes are given: either `all`, or `pool`.
  bool all = false;
  std::string pool;
  std::string reason;
  std::optional<std::variant<Duration, WallTime>> until;  // end of a pause; unset: until a person resumes
};

// Settings of `rehearse`. Unless `all` is set, `nodes`, `selector` and `drain` of Settings say what to drain and how.
struct RehearseSettings {
  bool all = false;                      // rehearse the update of the whole fleet by its agents
  std::string config_file;               // configuration of the agents; empty: their defaults
  std::string max_unavailable;           // overrides that file; empty: the value of the file
  std::optional<Duration> reboot_time;   // unset: the default of rehearse::FleetInput
  std::vector<std::string> drain_flags;  // names of the given flags that apply only to a single drain
  std::vector<std::string> snapshots;    // files, "-" is stdin; empty: read the cluster of the connection
  Duration ready_after = std::chrono::seconds(30);
  std::optional<Duration> terminate_within;
  std::optional<Duration> detach_within, attach_within;  // unset: the defaults of rehearse::Assumptions
};

struct Settings {
  Command command = Command::drain;
  k8s::ConnectionFlags connection;
  std::optional<Duration> request_timeout;  // limit per request; unset: the limit of each operation
  std::vector<std::string> nodes;           // names without duplicates, in the order given
  std::string selector;                     // selects nodes by label, instead of `nodes`
  bool selects = false;                     // --selector was given, even if it is empty
  bool in_a_pod = false;                    // the credential belongs to the pod in which this process runs
  drain::Options drain = kubectl_defaults();
  bool settle_given = false;  // --settle was given; otherwise --timeout limits its default
  PeopleSettings people;
  RehearseSettings rehearse;
  std::string timeline;  // file for the picture of a drain; empty: none
  OutputFormat output = OutputFormat::text;
  bool warnings_as_errors = false;  // a warning of the server turns success into failure
  unsigned verbosity = 0;
  agent::LogFormat log_format = agent::LogFormat::text;
  // The flags that were given to `agent`, as names and values; load_config() merges them with the other sources.
  std::vector<std::pair<std::string, std::string>> agent_options;

  // The namespace of Haulout's ConfigMap and Leases: -n, or the agent's default. The namespace of the kubeconfig is not
  // used, because it belongs to the user's own work.
  std::string haulout_namespace() const { return connection.ns.empty() ? "haulout" : connection.ns; }

  // The defaults in drain::Options are an agent's. A person who types a command gets the behaviour of kubectl instead.
  static drain::Options kubectl_defaults();
};

}  // namespace haulout::cli
