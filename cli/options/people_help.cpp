#include "cli/options/people_help.hpp"

#include <fmt/format.h>

namespace haulout::cli {
namespace {

constexpr std::string_view exit_codes =
    "\nExit codes:\n"
    "  0 done as asked   1 not done (a node is unknown, …)   2 wrong usage   3 kubeconfig, connection or permission\n"
    "  129, 130, 143 ended by SIGHUP, SIGINT, SIGTERM\n";

std::string status_text(std::string_view program) {
  return fmt::format(
      "Shows what the agents report on their Nodes: state, reason, whether a reboot is needed, since when, and one\n"
      "sentence; below it how far the fleet is and what holds it up. All of it is labels and annotations of the "
      "Nodes,\n"
      "so `kubectl get nodes -L haulout.dev/state,haulout.dev/reason` says the same.\n\n"
      "Agents report changes only. Marked are nodes that are not Ready, and agents that missed a time which they had\n"
      "set themselves.\n\n"
      "Usage:\n  {0} status [NODE...] [flags]\n\n"
      "Examples:\n"
      "  # All nodes\n  {0} status\n\n"
      "  # With pool, turn, versions and last update, and every change from now on\n  {0} status -o wide -w\n\n"
      "  # For a script\n  {0} status -l pool=web -o json\n",
      program);
}

std::string explain_text(std::string_view program) {
  return fmt::format(
      "Explains one node: what its agent says, every pause and turn that concerns it, every pod with what a drain\n"
      "would do to it, the budgets that hold pods, and why it is not updated now. Reads only; changes nothing.\n\n"
      "Windows, blockers and hooks are the agent's own: what it says of them is shown. Pods are judged by the agent's\n"
      "default policy.\n\n"
      "Usage:\n  {0} explain NODE [flags]\n\n"
      "Examples:\n  {0} explain worker-3\n",
      program);
}

std::string pause_text(std::string_view program) {
  return fmt::format(
      "Holds updates: no agent concerned begins one before the pause is over, and gives up a drain under way. A node\n"
      "that is rebooting already is not affected. What is written kubectl could write, too: the annotation\n"
      "haulout.dev/pause of a Node, or the key pause or pause.POOL of the ConfigMap haulout, which is created when it\n"
      "is not there.\n\n"
      "Usage:\n  {0} pause NODE... [flags]\n  {0} pause -l SELECTOR [flags]\n  {0} pause --pool POOL [flags]\n"
      "  {0} pause --all [flags]\n\n"
      "Examples:\n"
      "  # Nothing begins before tomorrow\n  {0} pause --all --until 24h --reason \"incident 4711\"\n\n"
      "  # One node, until somebody resumes it\n  {0} pause worker-3 --reason \"new disk on Monday\"\n",
      program);
}

std::string resume_text(std::string_view program) {
  return fmt::format(
      "Ends a pause of nodes, of a pool or of the cluster. Each is ended where it was begun: resuming the cluster\n"
      "leaves pauses of pools and nodes, and the other way round. Prints which pauses of the cluster and of pools\n"
      "remain; `{0} status` shows the nodes that are paused by themselves.\n\n"
      "Usage:\n  {0} resume NODE... [flags]\n  {0} resume -l SELECTOR [flags]\n  {0} resume --pool POOL [flags]\n"
      "  {0} resume --all [flags]\n\n"
      "Examples:\n  {0} resume --all\n  {0} resume worker-3\n",
      program);
}

std::string request_text(std::string_view program) {
  return fmt::format(
      "Asks the agents of these nodes to reboot them, whether or not an update needs it: in their turn, drained, and\n"
      "within all gates. Written is the annotation haulout.dev/request=reboot, which the agent removes when it is "
      "done.\n\n"
      "Usage:\n  {0} request-reboot NODE... [flags]\n  {0} request-reboot -l SELECTOR [flags]\n\n"
      "Examples:\n"
      "  {0} request-reboot worker-3 --reason \"kernel parameter changed\"\n\n"
      "  # Think better of it\n  kubectl annotate node worker-3 haulout.dev/request-\n",
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
      "Prints a script that teaches a shell the commands, flags and node names of haulout.\n\n"
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
