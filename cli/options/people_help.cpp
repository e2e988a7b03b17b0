#include "cli/options/people_help.hpp"

#include <fmt/format.h>

namespace haulout::cli {
namespace {

constexpr std::string_view exit_codes =
    "\nExit codes:\n"
    "  0 done   1 not done (for example an unknown node)   2 wrong usage   3 kubeconfig, connection or permission\n"
    "  129, 130, 143 ended by SIGHUP, SIGINT, SIGTERM\n";

std::string status_text(std::string_view program) {
  return fmt::format(
      "Shows what the agents report on their Nodes: state, reason, whether a reboot is needed, since when, and a\n"
      "message. Below that it shows how far the fleet is and what blocks it. The agents write these as labels and\n"
      "annotations of the Nodes: `kubectl get nodes -L haulout.dev/state,haulout.dev/reason` shows the same.\n\n"
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
      "Only the agent can evaluate maintenance windows, blocking pods and hooks, so this shows what the agent reports\n"
      "about them. What a drain would do to a pod is decided by the default policy of the agent.\n\n"
      "Usage:\n  {0} explain NODE [flags]\n\n"
      "Examples:\n  {0} explain worker-3\n",
      program);
}

std::string pause_text(std::string_view program) {
  return fmt::format(
      "Pauses updates: until the pause ends, the agents begin no update. They cancel a running drain and uncordon its\n"
      "node. A node that is already rebooting is not affected.\n\n"
      "The command writes what kubectl could write, too: the annotation haulout.dev/pause of a Node, or the key pause\n"
      "or pause.POOL of the ConfigMap haulout, which it creates if it does not exist.\n\n"
      "Usage:\n  {0} pause NODE... [flags]\n  {0} pause -l SELECTOR [flags]\n  {0} pause --pool POOL [flags]\n"
      "  {0} pause --all [flags]\n\n"
      "Examples:\n"
      "  # No update begins before tomorrow\n  {0} pause --all --until 24h --reason \"incident 4711\"\n\n"
      "  # One node, until it is resumed\n  {0} pause worker-3 --reason \"new disk on Monday\"\n",
      program);
}

std::string resume_text(std::string_view program) {
  return fmt::format(
      "Ends a pause of nodes, of a pool or of the cluster. Each must be ended at the level at which it was set:\n"
      "resuming the cluster does not end pauses of pools and nodes, nor the other way round. Prints which pauses of\n"
      "the cluster and of pools remain in effect. To list nodes that are paused individually, run `{0} status`.\n\n"
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
      "  # Cancel the request\n  kubectl annotate node worker-3 haulout.dev/request-\n",
      program);
}

std::string text_of(Command command, std::string_view program) {
  switch (command) {
    case Command::status: return status_text(program);
    case Command::explain: return explain_text(program);
    case Command::pause: return pause_text(program);
    case Command::resume: return resume_text(program);
    case Command::request_reboot: return request_text(program);
    default: return {};
  }
}

}  // namespace

std::string people_text(Command command, std::string_view program) {
  return text_of(command, program).append(exit_codes);
}

std::string completion_text(std::string_view program) {
  return fmt::format(
      "Prints a script with which a shell completes the commands, flags and node names of haulout.\n\n"
      "Usage:\n  {0} completion bash|zsh|fish\n\n"
      "Examples:\n"
      "  # bash: now, and from the next login on (needs the package bash-completion)\n"
      "  source <({0} completion bash)\n"
      "  {0} completion bash > ~/.local/share/bash-completion/completions/haulout\n\n"
      "  # zsh\n  {0} completion zsh > \"${{fpath[1]}}/_haulout\"\n\n"
      "  # fish\n  {0} completion fish > ~/.config/fish/completions/haulout.fish\n",
      program);
}

}  // namespace haulout::cli
