#include "cli/options/words.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/options/completion.hpp"
#include "cli/options/help.hpp"

namespace haulout::cli {
namespace {

// Adds the node to the settings. Accepts "n1" and, as kubectl does, "node/n1". Returns an error message, or an empty
// string on success.
std::string take_node(Settings& settings, const std::string& word) {
  std::string name = word;
  const std::size_t slash = word.find('/');
  if (slash != std::string::npos) {
    const std::string kind = word.substr(0, slash);
    if (kind != "node" && kind != "nodes" && kind != "no")
      return fmt::format("\"{}\" is not a node: write NAME or node/NAME", word);
    name = word.substr(slash + 1);
  }
  if (name.empty() || name.find('/') != std::string::npos)
    return fmt::format("\"{}\" is not a node name: write NAME or node/NAME", word);
  if (std::find(settings.nodes.begin(), settings.nodes.end(), name) == settings.nodes.end())
    settings.nodes.push_back(name);
  return {};
}

std::string take_nodes(Settings& settings, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    std::string problem = take_node(settings, word);
    if (!problem.empty()) return problem;
  }
  if (!settings.nodes.empty() && !settings.selector.empty())
    return "cannot specify both a node name and a --selector option: name the nodes, or select them by label";
  return {};
}

// Returns an error message if neither a node nor a selector is given, else an empty string. For the commands that
// kubectl has, too, the message is kubectl's.
std::string need_nodes(const Settings& settings) {
  if (!settings.nodes.empty() || !settings.selector.empty()) return {};
  if (settings.selects)
    return "you must provide one or more resources: the --selector is empty; name nodes, or select them by label";
  const bool of_kubectl = settings.command == Command::drain || settings.command == Command::cordon ||
                          settings.command == Command::uncordon;
  return (of_kubectl ? fmt::format("USAGE: {} NODE [flags]; ", to_string(settings.command)) : "") +
         "no node is given: name one or more, or select them with -l";
}

std::string needs_all(const std::string& flag) {
  return flag + " applies to the agents of a fleet: add --all to rehearse their update, or remove it";
}

// For `rehearse`: returns an error message unless either nodes or --all is given, and only flags that may be used with
// it.
std::string need_nodes_or_all(const Settings& settings) {
  const RehearseSettings& rehearse = settings.rehearse;
  if (!rehearse.all) {
    if (!rehearse.config_file.empty()) return needs_all("--config");
    if (!rehearse.max_unavailable.empty()) return needs_all("--max-unavailable");
    if (rehearse.reboot_time) return needs_all("--reboot-time");
    std::string problem = need_nodes(settings);
    return problem.empty() ? problem : problem + ", or rehearse the update of the whole fleet with --all";
  }
  if (!settings.nodes.empty() || !settings.selector.empty())
    return "--all rehearses every node: remove the node names and --selector, or remove --all to rehearse single "
           "drains";
  if (!rehearse.drain_flags.empty())
    return fmt::format(
        "--{} applies to a single drain: with --all the agents drain according to their configuration{}; set it there "
        "and name the file with --config",
        rehearse.drain_flags.front(),
        rehearse.drain_flags.front() == "timeout" ? ", where the option is drain-deadline" : "");
  return {};
}

// For `pause` and `resume`: returns an error message unless exactly one of nodes, --pool and --all is given.
std::string need_one_target(const Settings& settings) {
  const bool nodes = !settings.nodes.empty() || !settings.selector.empty();
  const int given = (nodes ? 1 : 0) + (settings.people.pool.empty() ? 0 : 1) + (settings.people.all ? 1 : 0);
  if (given == 1) return {};
  return given == 0 ? "no target is given: name nodes, select them with -l, or use --pool POOL or --all"
                    : "nodes, --pool and --all exclude each other: run the command once for each";
}

std::string shell_problem(const std::vector<std::string>& words) {
  const std::string shells = joined(completion_shells(), ", ");
  if (words.size() != 1) return "completion takes one shell: " + shells;
  const auto known = completion_shells();
  if (std::find(known.begin(), known.end(), words.front()) != known.end()) return {};
  return fmt::format("no completion for shell \"{}\": there is {}", printable(words.front()), shells);
}

}  // namespace

std::string take_words(Settings& settings, const std::vector<std::string>& words) {
  switch (settings.command) {
    case Command::agent:
      return words.empty() ? std::string()
                           : fmt::format("agent takes no arguments, but got \"{}\": set its node with --node-name",
                                         words.front());
    case Command::version: return words.empty() ? "" : "version takes no arguments";
    case Command::completion: return shell_problem(words);
    case Command::complete_nodes: return {};
    default: break;
  }
  std::string problem = take_nodes(settings, words);
  if (!problem.empty()) return problem;
  switch (settings.command) {
    case Command::status: return {};  // without names, `status` shows all nodes
    case Command::explain:
      return settings.nodes.size() == 1 ? "" : "explain takes one node: `haulout status` shows all nodes";
    case Command::pause:
    case Command::resume: return need_one_target(settings);
    case Command::rehearse: return need_nodes_or_all(settings);
    default: return need_nodes(settings);
  }
}

}  // namespace haulout::cli
