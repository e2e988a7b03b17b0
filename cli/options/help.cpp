#include "cli/options/help.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/options/flags.hpp"

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
    if (const std::string shown = flag.shown_default(); !shown.empty()) result += "=" + shown;
    result += '\n' + indented(flag.help);
  }
  if (!without_effect.empty())
    result += "    Accepted for compatibility with kubectl, without effect:\n" + indented(joined(without_effect, ", "));
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
      "Accepts the flags of `kubectl drain`, and is faster and safer: it cordons the node, evicts every pod that must\n"
      "leave (by its UID, so never another pod of the same name), and waits until all are deleted. It reports which\n"
      "pods block the drain, and why.\n\n"
      "Mirror pods stay on the node. With --ignore-daemonsets, the pods of DaemonSets stay, too. If policy protects a\n"
      "pod (DaemonSet, local data, no controller), the drain ends before it changes anything; the flags below say\n"
      "what to do with such pods. A drain that fails later leaves the node cordoned, unless --uncordon-on-failure\n"
      "is set.\n\n"
      "Usage:\n  {0} drain NODE... [flags]\n  {0} drain -l SELECTOR [flags]\n\n"
      "Examples:\n"
      "  # Drain node \"foo\", even if there are pods on it that no controller manages\n"
      "  {0} drain foo --force\n\n"
      "  # As above, but change nothing if a pod has no controller; give each pod 15 minutes to terminate\n"
      "  {0} drain foo --grace-period=900\n\n"
      "  # The flags that most nodes need; give up after ten minutes\n"
      "  {0} drain foo --ignore-daemonsets --delete-emptydir-data --timeout=10m\n\n"
      "  # Show what would happen\n"
      "  {0} drain foo --ignore-daemonsets --dry-run=client\n\n"
      "  # All nodes of a pool, one after the other, five pods at a time, the report as JSON\n"
      "  {0} drain -l pool=old --ignore-daemonsets --max-concurrent=5 -o json\n\n"
      "Exit codes:\n"
      "  0 drained   1 not drained   2 wrong usage   3 kubeconfig, connection or permission\n"
      "  129, 130, 143 ended by SIGHUP, SIGINT, SIGTERM   several nodes: the largest\n",
      program);
}

std::string retire_text(std::string_view program) {
  return fmt::format(
      "Takes nodes out of the cluster for good: drains each of them, checks that nothing is left that the deletion\n"
      "would harm, deletes its Node (by UID, so never another Node of the same name), and waits until the control\n"
      "plane has deleted what belonged to it. Without --local it does not touch the machine: stop the kubelet there,\n"
      "because a kubelet that is restarted registers its node again. With --local, as root on the machine itself,\n"
      "it also cleans up the machine with the programs in /etc/haulout/retire.d. It never reboots.\n\n"
      "The drain takes the flags of `{0} drain`. The pods of DaemonSets are not evicted: they are deleted\n"
      "with their Node. By default the drain also waits until volumes are detached, evicts at most 25% of the pods of\n"
      "a controller at a time, and warns of pods that fit on no other node or are the only one of their controller.\n"
      "It needs the rights for these checks.\n\n"
      "The Node is not deleted if its drain fails, if a pod is left that would end without an eviction, if a volume\n"
      "is still attached, or while the agent of the node updates it.\n\n"
      "Usage:\n  {0} retire NODE... [flags]\n  {0} retire -l SELECTOR [flags]\n  {0} retire --local [NODE] [flags]\n\n"
      "Examples:\n"
      "  # Show what would happen\n"
      "  {0} retire foo --dry-run=client\n\n"
      "  # Change nothing if a pod fits on no other node or is the only one of its controller\n"
      "  {0} retire foo --delete-emptydir-data --check-fit=block --single-replica=block\n\n"
      "Exit codes:\n"
      "  0 retired   1 not retired, or something is left   2 wrong usage   3 kubeconfig, connection or permission\n"
      "  129, 130, 143 ended by SIGHUP, SIGINT, SIGTERM   several nodes: the largest\n",
      program);
}

std::string rehearse_text(std::string_view program) {
  return fmt::format(
      "Simulates the drain of nodes on a copy of the cluster, in virtual time. It runs the same code as `{0} drain`,\n"
      "with the same flags. It reports how long the drain would take, which pods would block it and why, and which\n"
      "pods would find no capacity on other nodes. It changes nothing: it only lists the objects of the cluster, and\n"
      "with --snapshot it does not connect to a cluster at all.\n\n"
      "With --all it simulates the update of the whole fleet: each node that is Ready needs one reboot, and agents\n"
      "use slots, windows and drains as the configuration of --config says. --compare rehearses the update with "
      "several\n"
      "settings and prints a table; --plan finds the fastest one that harms no workload.\n\n"
      "The simulation assumes what a snapshot does not contain: how soon new pods are Ready (--ready-after), how long\n"
      "volumes take to detach and attach (--detach-within, --attach-within), and that each pod takes its whole grace\n"
      "period to terminate (--terminate-within). It computes capacity as the scheduler does, from requests, taints,\n"
      "node affinity and pod anti-affinity, and lists the pods whose placement depends on more.\n\n"
      "Usage:\n  {0} rehearse NODE... [flags]\n  {0} rehearse -l SELECTOR [flags]\n"
      "  {0} rehearse --all [--config FILE] [flags]\n\n"
      "Examples:\n"
      "  # The cluster of the kubeconfig\n"
      "  {0} rehearse worker-3 --ignore-daemonsets --delete-emptydir-data\n\n"
      "  # A cluster that cannot be reached, with a timeline as SVG\n"
      "  kinds=nodes,pods,pdb,deploy,rs,sts,ds,jobs,pv,pvc,volumeattachments,quota,svc,ns\n"
      "  kubectl get $kinds,validatingwebhookconfigurations,mutatingwebhookconfigurations -A -o json > cluster.json\n"
      "  {0} rehearse worker-3 -f cluster.json --ignore-daemonsets --timeline drain.svg\n\n"
      "  # All nodes, two at a time, as agents with this configuration would update them\n"
      "  {0} rehearse --all --config haulout.yaml --max-unavailable 2 -f cluster.json\n\n"
      "  # What more nodes at a time would do to the workloads, and how many to choose\n"
      "  {0} rehearse --all --config haulout.yaml -f cluster.json --compare max-unavailable=1,2,5,10%\n"
      "  {0} rehearse --all --config haulout.yaml -f cluster.json --plan\n\n"
      "Exit codes:\n"
      "  0 all nodes would be drained or updated, and all pods find capacity   1 otherwise\n"
      "  2 wrong usage or configuration   3 kubeconfig, connection or permission, or an unusable snapshot\n",
      program);
}

std::string audit_text(std::string_view program) {
  return fmt::format(
      "Tells which nodes of the cluster cannot be drained, why, and whose pods it is. First it looks for what the\n"
      "objects tell by themselves: budgets that never allow an eviction, services with one pod, pods that fit on no\n"
      "other node, and more. Then it rehearses the drain of each node by itself, as its agent would drain it, in\n"
      "virtual time. It changes nothing: it only lists the objects of the cluster, and with --snapshot it does not\n"
      "connect to a cluster at all.\n\n"
      "A finding has a severity: blocks (the drain of a node cannot end), risk (a service is down for a while, or a\n"
      "drain is slow or unsafe) or note. Findings are grouped by owner, the worst first, each with its way out.\n\n"
      "Usage:\n  {0} audit [flags]\n\n"
      "Examples:\n"
      "  # The cluster of the kubeconfig, drained as agents with this configuration drain\n"
      "  {0} audit --config haulout.yaml\n\n"
      "  # A cluster that cannot be reached, as a page for a browser\n"
      "  kinds=nodes,pods,pdb,deploy,rs,sts,ds,jobs,pv,pvc,volumeattachments,quota,svc,ns\n"
      "  kubectl get $kinds,validatingwebhookconfigurations,mutatingwebhookconfigurations -A -o json > cluster.json\n"
      "  {0} audit -f cluster.json -o html > audit.html\n\n"
      "  # In CI: fail only for what is new\n"
      "  {0} audit -f cluster.json -o json > baseline.json\n"
      "  {0} audit -f cluster.json --baseline baseline.json --fail-on risk -o junit > audit.xml\n\n"
      "  # Manifests, before they are applied\n"
      "  {0} audit -f manifests/ -o sarif > audit.sarif\n\n"
      "Exit codes:\n"
      "  0 nothing blocks a drain   1 something does (--fail-on)\n"
      "  2 wrong usage or configuration   3 kubeconfig, connection or permission, or an unusable snapshot\n",
      program);
}

std::string migrate_text(std::string_view program) {
  return fmt::format(
      "Writes the configuration of the agents that does what another program for reboots does, so that a cluster can\n"
      "change over. kured is the only one that it knows. It reads the options of kured from a file, or from kured's\n"
      "DaemonSet in the cluster. It prints config.yaml on stdout, with a comment above each line that says from which\n"
      "option of kured it comes, and on stderr a row for each option of kured that was given: translated, not needed,\n"
      "no counterpart, decide (a person must decide or check something) or unknown (kured has no such option).\n\n"
      "The configuration is one that the agent accepts. If kured was kept from reboots by something that a person "
      "must\n"
      "decide about, such as a time zone that was not read, it has max-unavailable: 0: no node is updated before. The\n"
      "same holds for an unknown option, and for a value with which kured would not start.\n\n"
      "With --hold-lock it takes kured's lock instead, so that kured begins no further node while you change over. It\n"
      "does not take the lock from a node that holds it, and names that node. --release-lock is the way back.\n\n"
      "Usage:\n  {0} migrate kured [flags]\n  {0} migrate kured --hold-lock [flags]\n"
      "  {0} migrate kured --release-lock [flags]\n\n"
      "Examples:\n"
      "  # kured of the cluster of the kubeconfig\n"
      "  {0} migrate kured > config.yaml\n\n"
      "  # A manifest, the values of kured's Helm chart, or a HelmRelease or Application with them\n"
      "  {0} migrate kured -f kured-ds.yaml > config.yaml\n\n"
      "  # The values of a release\n"
      "  helm get values kured -n kube-system --all -o yaml | {0} migrate kured -f - > config.yaml\n\n"
      "  # Let kured begin no further node\n"
      "  {0} migrate kured --hold-lock\n\n"
      "Exit codes:\n"
      "  0 every option has a counterpart or needs none; with --hold-lock: the lock is held\n"
      "  1 an option has none or needs a decision (the configuration is printed all the same); a node holds the lock\n"
      "  2 wrong usage, or a file that cannot be read\n"
      "  3 kubeconfig, connection or permission, or there is no such DaemonSet\n",
      program);
}

std::string fleetlock_text(std::string_view program) {
  return fmt::format(
      "Gives machines outside of the cluster slots of a pool, by the FleetLock protocol, which Zincati and the agents\n"
      "of Haulout speak. A slot is a Lease of the pool, as the agents use it, so that these machines and the nodes of\n"
      "the pool share one limit. The agents count such a slot as a node that is unavailable.\n\n"
      "All that the server knows is in the API server: several may run, and one may be killed at any time. It needs\n"
      "the right to get, list, create and delete Leases in its namespace. It has no TLS and knows no passwords: put a\n"
      "proxy in front of it, or let only the machines reach it. It runs until SIGTERM.\n\n"
      "Usage:\n  {0} fleetlock-serve [flags]\n\n"
      "Examples:\n"
      "  # In a pod: slots of the pool default, on all addresses\n"
      "  {0} fleetlock-serve --listen :8080\n\n"
      "  # Two pools, of each of which two nodes or machines may be unavailable\n"
      "  {0} fleetlock-serve --listen :8080 --pool web --pool edge --max-unavailable 2\n\n"
      "Exit codes:\n"
      "  2 wrong usage   3 kubeconfig, or an address that cannot be used\n"
      "  129, 130, 143 ended by SIGHUP, SIGINT, SIGTERM\n",
      program);
}

std::string cordon_text(std::string_view program, Command command) {
  const bool on = command == Command::cordon;
  return fmt::format(
      "Mark nodes as {2}schedulable.{3}\n\n"
      "Usage:\n  {0} {1} NODE... [flags]\n  {0} {1} -l SELECTOR [flags]\n\n"
      "Examples:\n  # Mark node \"foo\" as {2}schedulable\n  {0} {1} foo\n",
      program, to_string(command), on ? "un" : "",
      on ? " An annotation of the node records who did it and when."
         : " Also removes the annotation that records who cordoned the node, whoever that was.");
}

std::string agent_text(std::string_view program) {
  std::string text = fmt::format(
      "Runs on a node and reboots it for updates of its operating system. When a reboot is needed, the agent waits\n"
      "for its gates and a slot, then cordons, drains, reboots, verifies and uncordons the node. State and reason are\n"
      "labels of the Node.\n\n"
      "Every flag except --config, --check and --release may also be a key of the configuration file. Every flag\n"
      "except --check and --release may also be an environment variable, for example HAULOUT_DRAIN_DEADLINE for\n"
      "--drain-deadline. Flags override variables, and variables override the file.\n\n"
      "Usage:\n  {0} agent [flags]\n\n"
      "Examples:\n"
      "  # The command of the systemd unit; the agent reads /etc/haulout/config.yaml if it exists\n"
      "  {0} agent\n\n"
      "  # Check everything, and change nothing\n"
      "  {0} agent --check\n\n"
      "  # Two nodes at the same time, no drain longer than an hour\n"
      "  {0} agent --max-unavailable 2 --drain-deadline 1h\n\n"
      "Exit codes:\n"
      "  0 done   1 check or release failed, or an option does not fit this node\n"
      "  2 wrong usage or configuration, found before any request\n"
      "  3 kubeconfig, connection or permission, or the agent cannot work here (for example: no back end)\n"
      "  129, 130, 143 ended by SIGHUP, SIGINT, SIGTERM\n",
      program);
  for (const FlagGroup& group : agent_flag_groups())
    text += fmt::format("\n{}:\n", group.title) + flag_list(group.flags);
  return text;
}

constexpr std::string_view people_exit_codes =
    "\nExit codes:\n"
    "  0 done   1 not done (for example an unknown node)   2 wrong usage   3 kubeconfig, connection or permission\n"
    "  129, 130, 143 ended by SIGHUP, SIGINT, SIGTERM\n";

std::string status_text(std::string_view program) {
  return fmt::format(
      "Shows what the agents report on their Nodes: state, reason, whether a reboot is needed, since when, and a\n"
      "message. Below that it shows how far the fleet is and what blocks it. The agents write labels and annotations\n"
      "of their Nodes; `kubectl get nodes -L haulout.dev/state,haulout.dev/reason` shows state and reason, too.\n\n"
      "Agents report changes; only during an update they also send a heartbeat. The output marks nodes that are not\n"
      "Ready, and agents that missed a heartbeat or a deadline that they had recorded.\n\n"
      "Usage:\n  {0} status [NODE...] [flags]\n\n"
      "Examples:\n"
      "  # All nodes\n  {0} status\n\n"
      "  # With pool, slot, versions and last update, and every change from now on\n  {0} status -o wide -w\n\n"
      "  # For a script\n  {0} status -l pool=web -o json\n",
      program);
}

std::string explain_text(std::string_view program) {
  return fmt::format(
      "Explains one node: what its agent reports, every pause and slot that concerns the node, what a drain would do\n"
      "to each pod, the budgets that block pods, and why the node is not updated now. It changes nothing.\n\n"
      "Only the agent can evaluate some gates, such as maintenance windows and blocking pods: the command shows what\n"
      "the agent reports about them. The command does not know the options of the agent, so it judges the pods by the\n"
      "default options.\n\n"
      "Usage:\n  {0} explain NODE [flags]\n\n"
      "Examples:\n  {0} explain worker-3\n",
      program);
}

std::string pause_text(std::string_view program) {
  return fmt::format(
      "Pauses updates: until the pause ends, the agents begin no update. They cancel a running drain and uncordon its\n"
      "node. An update goes on only if its installation after the drain has begun, or its reboot is requested.\n\n"
      "You can also do this with kubectl: the command sets the annotation haulout.dev/pause of a Node, or the key\n"
      "pause or pause.POOL of the ConfigMap haulout, which it creates if it does not exist.\n\n"
      "Usage:\n  {0} pause NODE... [flags]\n  {0} pause -l SELECTOR [flags]\n  {0} pause --pool POOL [flags]\n"
      "  {0} pause --all [flags]\n\n"
      "Examples:\n"
      "  # No update begins before tomorrow\n  {0} pause --all --until 24h --reason \"incident 4711\"\n\n"
      "  # One node, until it is resumed\n  {0} pause worker-3 --reason \"new disk on Monday\"\n",
      program);
}

std::string resume_text(std::string_view program) {
  return fmt::format(
      "Ends a pause of nodes, of a pool or of the cluster. A pause must be ended at the level at which it was set:\n"
      "resuming the cluster ends no pause of a pool or node, and resuming a pool or node does not end the pause of\n"
      "the cluster. Prints which pauses of the cluster and of pools still affect what was resumed.\n"
      "`{0} explain NODE` shows every pause that concerns a node, and `{0} status -o json` has the pauses of all\n"
      "nodes (field pause).\n\n"
      "Usage:\n  {0} resume NODE... [flags]\n  {0} resume -l SELECTOR [flags]\n  {0} resume --pool POOL [flags]\n"
      "  {0} resume --all [flags]\n\n"
      "Examples:\n  {0} resume --all\n  {0} resume worker-3\n",
      program);
}

std::string request_text(std::string_view program) {
  return fmt::format(
      "Requests that the agents of these nodes reboot them, even if no update needs it. Each node still waits for its\n"
      "gates and for a slot, and is drained first. The command sets the annotation haulout.dev/request=reboot, which\n"
      "the agent removes when the reboot is done.\n\n"
      "Usage:\n  {0} request-reboot NODE... [flags]\n  {0} request-reboot -l SELECTOR [flags]\n\n"
      "Examples:\n"
      "  {0} request-reboot worker-3 --reason \"kernel parameter changed\"\n\n"
      "  # Not before this time\n"
      "  {0} request-reboot worker-3 --at 2026-12-24T22:00:00Z\n\n"
      "  # Cancel the request\n  kubectl annotate node worker-3 haulout.dev/request-\n",
      program);
}

std::string release_text(std::string_view program) {
  return fmt::format(
      "Gives back the pods of a node that a drain with --surge has taken from their ReplicaSets and has not evicted,\n"
      "for example because the drain was killed. It restores the label pod-template-hash of each such pod, waits\n"
      "until the ReplicaSet has adopted the pod, and removes the annotation haulout.dev/surged. The ReplicaSet\n"
      "deletes a pod that is too many.\n"
      "Withdraws the EvictionRequests that a drain with --eviction-requests has left open, too.\n"
      "Do not run it while the node is being drained. It does not uncordon the node. To give up an agent's update of\n"
      "the node, run `{0} agent --release`, which gives back its pods, too.\n\n"
      "Usage:\n  {0} release NODE... [flags]\n  {0} release -l SELECTOR [flags]\n\n"
      "Examples:\n  {0} release worker-3\n",
      program);
}

std::string people_text_of(Command command, std::string_view program) {
  switch (command) {
    case Command::status: return status_text(program);
    case Command::explain: return explain_text(program);
    case Command::pause: return pause_text(program);
    case Command::resume: return resume_text(program);
    case Command::request_reboot: return request_text(program);
    case Command::release: return release_text(program);
    default: return {};
  }
}

std::string people_text(Command command, std::string_view program) {
  return people_text_of(command, program).append(people_exit_codes);
}

std::string completion_text(std::string_view program) {
  return fmt::format(
      "Prints a script with which a shell completes the commands, flags and node names of haulout.\n\n"
      "Usage:\n  {0} completion bash|zsh|fish\n\n"
      "Examples:\n"
      "  # bash: now, and from the next login on (needs the package bash-completion)\n"
      "  source <({0} completion bash)\n"
      "  mkdir -p ~/.local/share/bash-completion/completions\n"
      "  {0} completion bash > ~/.local/share/bash-completion/completions/haulout\n\n"
      "  # zsh\n  {0} completion zsh > \"${{fpath[1]}}/_haulout\"\n\n"
      "  # fish\n  mkdir -p ~/.config/fish/completions\n"
      "  {0} completion fish > ~/.config/fish/completions/haulout.fish\n",
      program);
}

std::string about_version_text(std::string_view program) {
  return fmt::format(
      "Prints the version of the program. Connects to no cluster.\n\n"
      "Usage:\n  {0} version [flags]\n\n"
      "Examples:\n"
      "  # Also the commit, its time and the platform\n  {0} version -o json\n",
      program);
}

std::string head_of(Command command, std::string_view program) {
  switch (command) {
    case Command::drain: return drain_text(program);
    case Command::retire: return retire_text(program);
    case Command::rehearse: return rehearse_text(program);
    case Command::audit: return audit_text(program);
    case Command::migrate: return migrate_text(program);
    case Command::fleetlock_serve: return fleetlock_text(program);
    case Command::cordon:
    case Command::uncordon: return cordon_text(program, command);
    default: return people_text(command, program);
  }
}

}  // namespace

const std::vector<CommandRow>& command_rows() {
  static const std::vector<CommandRow> rows = {
      {Command::drain, "drain", "Cordon a node, evict its pods and wait until they are deleted"},
      {Command::cordon, "cordon", "Mark a node as unschedulable"},
      {Command::uncordon, "uncordon", "Mark a node as schedulable"},
      {Command::retire, "retire", "Drain a node, delete its Node and check that nothing is left of it"},
      {Command::status, "status", "Show the state of each node, and what blocks the fleet"},
      {Command::explain, "explain", "Explain one node: gates, pods, budgets, and why it is not updated now"},
      {Command::pause, "pause", "Pause updates of nodes, of a pool or of the cluster"},
      {Command::resume, "resume", "End a pause"},
      {Command::request_reboot, "request-reboot", "Request that the agent of a node reboots it when it gets a slot"},
      {Command::release, "release",
       "Give back what a killed drain has left: pods that were surged, and EvictionRequests"},
      {Command::rehearse, "rehearse",
       "Simulate a drain or the update of a fleet: how long it takes, and what blocks it"},
      {Command::audit, "audit", "Tell which nodes cannot be drained, why, and whose pods it is"},
      {Command::migrate, "migrate",
       "Write the configuration that does what kured does, and say what becomes of its options"},
      {Command::agent, "agent", "Run the agent, which drains and reboots this machine's node for updates"},
      {Command::fleetlock_serve, "fleetlock-serve", "Give machines outside of the cluster slots of a pool (FleetLock)"},
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

std::string help_text(std::optional<Command> command, std::string_view program) {
  if (!command) return overview(program);
  if (*command == Command::version)
    return about_version_text(program) + "\nFlags:\n" + flag_list(command_flags(*command));
  if (*command == Command::agent) return agent_text(program);
  if (*command == Command::completion) return completion_text(program);
  return head_of(*command, program) + "\nFlags:\n" + flag_list(command_flags(*command)) +
         "\nConnection and logging:\n" + flag_list(connection_flags());
}

namespace {

std::string in_a_table(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '<') result += '\\';
    result += c;
  }
  return result;
}

std::string table_of_flags(std::string_view title, const std::vector<Flag>& flags) {
  std::string table = fmt::format("\n## {}\n\n| flag | default | meaning |\n|---|---|---|\n", title);
  for (const Flag& flag : flags) {
    const std::string letter = flag.letter != 0 ? fmt::format("`-{}`, ", flag.letter) : "";
    const std::string shown = flag.shown_default();
    table += fmt::format("| {}`--{}` | {} | {} |\n", letter, flag.name, shown.empty() ? "" : "`" + shown + "`",
                         in_a_table(flag.help));
  }
  return table;
}

}  // namespace

std::string flags_page() {
  std::string page =
      "# The flags of the commands\n\n"
      "This page is made from the tables of options in `drain/` and `cli/options/`; a test compares them. `haulout\n"
      "COMMAND --help` prints the same. The flags of `haulout agent` are in [configuration.md](configuration.md).\n"
      "[cli.md](cli.md) and [commands.md](commands.md) explain what the commands do.\n\n"
      "A flag is written `--timeout 5m` or `--timeout=5m`. A Boolean flag takes no separate value: `--force`,\n"
      "`--force=false`. `--dry-run` needs the form `--dry-run=client`. Durations are written as in Go: `90s`, `5m`,\n"
      "`1h30m`, `1.5h`, `0`.\n";
  for (const CommandRow& row : command_rows()) {
    if (row.command == Command::agent) continue;
    const std::vector<Flag> flags = command_flags(row.command);
    if (!flags.empty()) page += table_of_flags(row.name, flags);
  }
  return page + table_of_flags("Connection and logging, for every command that connects", connection_flags());
}

}  // namespace haulout::cli
