// What the command line asks for, as plain data; the defaults are those of `kubectl drain`.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "drain/options.hpp"
#include "k8s/credentials.hpp"

namespace haulout::agent {

enum class Command { drain, cordon, uncordon, agent, version };
enum class OutputFormat { text, json, jsonl };
enum class LogFormat { text, json };

struct Settings {
  Command command = Command::drain;
  k8s::ConnectionFlags connection;
  std::optional<Duration> request_timeout;  // per request; unset: each operation's own
  std::vector<std::string> nodes;           // names, each once, in the order given
  std::string selector;                     // instead of names
  drain::Options drain = kubectl_defaults();
  OutputFormat output = OutputFormat::text;
  unsigned verbosity = 0;
  LogFormat log_format = LogFormat::text;
  // Of `agent`: its flags as they were given, name and value; load_config() joins them with the other sources.
  std::vector<std::pair<std::string, std::string>> agent_options;

  // The engine's defaults are an agent's; a person who types a command gets what kubectl would do.
  static drain::Options kubectl_defaults();
};

}  // namespace haulout::agent
