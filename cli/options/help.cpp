#include "cli/options/help.hpp"

#include <fmt/format.h>

#include "agent/process/version.hpp"
#include "base/text.hpp"
#include "cli/options/agent_flags.hpp"
#include "cli/options/flags.hpp"
#include "cli/options/people_help.hpp"

namespace haulout::cli {
namespace {

constexpr std::size_t text_width = 100;
constexpr std::string_view indent = "        ";

std::string indented(std::string_view text) {
  std::string result;
  for (const std::string& line : wrapped(text, text_width - indent.size())) result.append(indent).append(line) += '\n';
  return result;
}

std::string flag_list(const std::vector<Flag>& flags) {
  std::string result;
  std::vector<std::string> without_effect;
  for (const Flag& flag : flags) {
    if (flag.without_effect) {
      without_effect.push_back("--" + flag.name);
      continue;
    }
    result += flag.letter != 0 ? fmt::format("    -{}, ", flag.letter) : "    ";
    result += "--" + flag.name;
    if (!flag.shown_default.empty()) result += "=" + flag.shown_default;
    result += '\n' + indented(flag.help);
  }
  if (!without_effect.empty())
    result += "    Taken as kubectl takes them, without effect here:\n" + indented(joined(without_effect, ", "));
  return result;
}

std::string overview(std::string_view program) {
  std::string commands;
  for (const CommandRow& row : command_rows()) commands += fmt::format("  {:<14}  {}\n", row.name, row.summary);
  return fmt::format(
      "Takes a Kubernetes node safely out of service and back.\n\n"
      "Usage:\n  {0} COMMAND [flags]\n\n"
      "Commands:\n{1}\n"
      "{0} COMMAND --help explains a command and its flags.\n",
      program, commands);
}

std::string drain_text(std::string_view program) {
  return fmt::format(
      "Takes what `kubectl drain` takes, and does it faster and safer: cordons the node, evicts every pod that must\n"
      "leave (each by its UID, so never a namesake), and waits until all have vanished. Says what holds it up, and "
      "why.\n"
      "DaemonSet-managed and mirror pods stay. Pods that policy protects (local data, no controller) stop the drain\n"
      "before it touches anything; the flags below allow them. A failed drain leaves the node cordoned.\n\n"
      "Usage:\n  {0} drain NODE... [flags]\n  {0} drain -l SELECTOR [flags]\n\n"
      "Examples:\n"
      "  # Drain node \"foo\", even if there are pods on it that no controller manages\n"
      "  {0} drain foo --force\n\n"
      "  # As above, but stop if there are such pods, and give each pod 15 minutes to terminate\n"
      "  {0} drain foo --grace-period=900\n\n"
      "  # What most nodes need; give up after ten minutes\n"
      "  {0} drain foo --ignore-daemonsets --delete-emptydir-data --timeout=10m\n\n"
      "  # What would happen?\n"
      "  {0} drain foo --ignore-daemonsets --dry-run=client\n\n"
      "  # All nodes of a pool, one after the other, five pods at a time, the report as JSON\n"
      "  {0} drain -l pool=old --ignore-daemonsets --max-concurrent=5 -o json\n\n"
      "Exit codes:\n"
      "  0 drained   1 not drained   2 wrong usage   3 kubeconfig, connection or permission\n"
      "  129, 130, 143 ended by SIGHUP, SIGINT, SIGTERM   several nodes: the largest\n",
      program);
}

std::string rehearse_text(std::string_view program) {
  return fmt::format(
      "Plays the drain of nodes on a simulated copy of the cluster, in virtual time: the very drain that `{0} drain`\n"
      "runs, with the same flags. Says how long it would take, which pods would hold it up and why, and which would\n"
      "find no room elsewhere. Changes nothing; of the cluster it only lists objects, and with --snapshot not even "
      "that.\n\n"
      "With --all it plays the update of the whole fleet: each node that is Ready wants one reboot, and the agents "
      "take\n"
      "their turns, windows and drains as the configuration of --config says.\n\n"
      "What no snapshot tells is assumed: how soon new pods are Ready (--ready-after), how long volumes take to be\n"
      "detached and attached (--detach-within, --attach-within), and that each pod takes its whole grace period to\n"
      "terminate (--terminate-within). Room is reckoned as the scheduler does it, from requests, taints, node "
      "affinity\n"
      "and pod anti-affinity; pods whose placement depends on more are listed.\n\n"
      "Usage:\n  {0} rehearse NODE... [flags]\n  {0} rehearse -l SELECTOR [flags]\n"
      "  {0} rehearse --all [--config FILE] [flags]\n\n"
      "Examples:\n"
      "  # The cluster of the kubeconfig\n"
      "  {0} rehearse worker-3 --ignore-daemonsets --delete-emptydir-data\n\n"
      "  # A cluster out of reach, with a picture\n"
      "  kubectl get nodes,pods,pdb,deploy,rs,sts,ds,pv,pvc,volumeattachments,quota -A -o json > cluster.json\n"
      "  {0} rehearse worker-3 -f cluster.json --ignore-daemonsets --timeline drain.svg\n\n"
      "  # All nodes, two at a time, as agents with this configuration would take them\n"
      "  {0} rehearse --all --config haulout.yaml --max-unavailable 2 -f cluster.json\n\n"
      "Exit codes:\n"
      "  0 all would be drained, or updated, and all pods find room   1 it would not   2 wrong usage\n"
      "  3 kubeconfig, connection or permission, or a snapshot that cannot be used\n",
      program);
}

std::string cordon_text(std::string_view program, Command command) {
  const bool on = command == Command::cordon;
  return fmt::format(
      "Mark nodes as {2}schedulable.{3}\n\n"
      "Usage:\n  {0} {1} NODE... [flags]\n  {0} {1} -l SELECTOR [flags]\n\n"
      "Examples:\n  # Mark node \"foo\" as {2}schedulable\n  {0} {1} foo\n",
      program, to_string(command), on ? "un" : "",
      on ? " Who did it and when is noted on the node." : " The note of who cordoned it goes, too, whoever that was.");
}

std::string agent_text(std::string_view program) {
  std::string text = fmt::format(
      "Runs on a node and takes it through updates of its operating system: waits until a reboot is needed and it is\n"
      "the node's turn, cordons, evicts, reboots, verifies and uncordons. State and reason are labels of the Node.\n\n"
      "Every flag but --config, --check and --release may also be a key of the configuration file, and all but the "
      "last\n"
      "two an environment variable: --drain-deadline is HAULOUT_DRAIN_DEADLINE. Flags come before variables, "
      "variables\n"
      "before the file.\n\n"
      "Usage:\n  {0} agent [flags]\n\n"
      "Examples:\n"
      "  # What a systemd unit starts; /etc/haulout/config.yaml is read if it exists\n"
      "  {0} agent\n\n"
      "  # Is everything right? Touches nothing\n"
      "  {0} agent --check\n\n"
      "  # Two nodes at once, one drain no longer than an hour\n"
      "  {0} agent --max-unavailable 2 --drain-deadline 1h\n\n"
      "Exit codes:\n"
      "  0 ended as asked   1 check or release failed   2 wrong usage or configuration\n"
      "  3 kubeconfig, connection or permission   129, 130, 143 ended by SIGHUP, SIGINT, SIGTERM\n",
      program);
  for (const FlagGroup& group : agent_flag_groups())
    text += fmt::format("\n{}:\n", group.title) + flag_list(group.flags);
  return text;
}

std::string head_of(Command command, std::string_view program) {
  switch (command) {
    case Command::drain: return drain_text(program);
    case Command::rehearse: return rehearse_text(program);
    case Command::cordon:
    case Command::uncordon: return cordon_text(program, command);
    default: return people_text(command, program);
  }
}

}  // namespace

const std::vector<CommandRow>& command_rows() {
  static const std::vector<CommandRow> rows = {
      {Command::drain, "drain", "Cordon a node, evict its pods and wait until they have vanished"},
      {Command::cordon, "cordon", "Mark a node as unschedulable"},
      {Command::uncordon, "uncordon", "Mark a node as schedulable"},
      {Command::status, "status", "The fleet at a glance: the state of each node, and what holds it up"},
      {Command::explain, "explain", "Everything about one node: gates, pods, budgets, and why not now"},
      {Command::pause, "pause", "Begin no further update: of some nodes, a pool, or the cluster"},
      {Command::resume, "resume", "End a pause"},
      {Command::request_reboot, "request-reboot", "Ask the agent of a node to reboot it when it is its turn"},
      {Command::rehearse, "rehearse",
       "Play a drain, or a fleet's update, on a copy of the cluster: how long, what blocks it"},
      {Command::agent, "agent", "Take this machine's node through updates of its operating system, from now on"},
      {Command::completion, "completion", "Print a completion script for bash, zsh or fish"},
      {Command::version, "version", "Print the version"},
  };
  return rows;
}

std::string_view to_string(Command command) {
  for (const CommandRow& row : command_rows())
    if (row.command == command) return row.name;
  return "__complete";
}

std::optional<Command> command_of(std::string_view word) {
  for (const CommandRow& row : command_rows())
    if (row.name == word) return row.command;
  return word == to_string(Command::complete_nodes) ? std::optional(Command::complete_nodes) : std::nullopt;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandRow& row : command_rows()) names.emplace_back(row.name);
  names.emplace_back("help");
  return names;
}

std::string version_text() {
  return fmt::format("haulout {}\n", agent::version());
}

std::string help_text(std::optional<Command> command, std::string_view program) {
  if (!command) return overview(program);
  if (*command == Command::version) return fmt::format("Print the version.\n\nUsage:\n  {} version\n", program);
  if (*command == Command::agent) return agent_text(program);
  if (*command == Command::completion) return completion_text(program);
  return head_of(*command, program) + "\nFlags:\n" + flag_list(command_flags(*command)) +
         "\nConnection and logging:\n" + flag_list(connection_flags());
}

}  // namespace haulout::cli
