// What the command line asks for, as plain data; the defaults are those of `kubectl drain`.
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
  complete_nodes,  // hidden: what the completion of a shell asks for
  version,
};
enum class OutputFormat { text, wide, json, jsonl };

// Of the commands that look at a fleet and steer it.
struct PeopleSettings {
  bool watch = false;
  bool check_fit = false;
  // What a pause is about, unless it is about nodes: exactly one of these.
  bool all = false;
  std::string pool;
  std::string reason;
  std::optional<std::variant<Duration, WallTime>> until;  // unset: until somebody resumes
};

// Of `rehearse`: what is drained is in `nodes`, `selector` and `drain`, unless it is all.
struct RehearseSettings {
  bool all = false;                      // the agents of the whole fleet
  std::string config_file;               // theirs; empty: the defaults
  std::string max_unavailable;           // before what that file says; empty: as it says
  std::optional<Duration> reboot_time;   // unset: what is assumed without
  std::vector<std::string> drain_flags;  // names of those given that are about a single drain
  std::vector<std::string> snapshots;    // files, "-" is stdin; none: the cluster of the connection
  Duration ready_after = std::chrono::seconds(30);
  std::optional<Duration> terminate_within;
  std::optional<Duration> detach_within, attach_within;  // unset: what is assumed without
};

struct Settings {
  Command command = Command::drain;
  k8s::ConnectionFlags connection;
  std::optional<Duration> request_timeout;  // per request; unset: each operation's own
  std::vector<std::string> nodes;           // names, each once, in the order given
  std::string selector;                     // instead of names
  bool selects = false;                     // --selector was given, be it empty
  bool in_a_pod = false;                    // the credential is that of the pod that this runs in
  drain::Options drain = kubectl_defaults();
  bool settle_given = false;  // --settle; its default gives way to --timeout
  PeopleSettings people;
  RehearseSettings rehearse;
  std::string timeline;  // file for the picture of a drain; empty: none
  OutputFormat output = OutputFormat::text;
  bool warnings_as_errors = false;  // what the server warns of makes a success a failure
  unsigned verbosity = 0;
  agent::LogFormat log_format = agent::LogFormat::text;
  // Of `agent`: its flags as they were given, name and value; load_config() joins them with the other sources.
  std::vector<std::pair<std::string, std::string>> agent_options;

  // Where Haulout's ConfigMap and Leases are: -n, or the agent's default. Not the kubeconfig's namespace, which is
  // about somebody's work.
  std::string haulout_namespace() const { return connection.ns.empty() ? "haulout" : connection.ns; }

  // The engine's defaults are an agent's; a person who types a command gets what kubectl would do.
  static drain::Options kubectl_defaults();
};

}  // namespace haulout::cli
