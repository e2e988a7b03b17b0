#include "cli/program/job.hpp"

#include <fmt/format.h>

#include "agent/process/exit_code.hpp"
#include "base/text.hpp"
#include "cli/program/advice.hpp"
#include "k8s/status.hpp"

namespace haulout::cli {

namespace {

// How long a command waits for the server before it prints that it waits; the same as in a drain.
constexpr Duration worth_a_word = std::chrono::seconds(5);

// The error that the API server returns for an object that does not exist.
Error not_there(std::string message) {
  Error error(Errc::status, std::move(message));
  error.peer.emplace().code = 404;
  error.peer->structured = true;
  return error;
}

Error missing(const std::vector<std::string>& names) {
  const bool one = names.size() == 1;
  return not_there(
      fmt::format("{} {} {} not exist in this cluster, so nothing was changed ('kubectl get nodes' lists the nodes)",
                  one ? "node" : "nodes", joined(names, ", "), one ? "does" : "do"));
}

}  // namespace

void Waiting::tell(const Error& error) {
  if (tools_.clock.now() < since_ + worth_a_word) return;
  std::string message = printable(error.message());
  if (message == told_) return;
  tools_.console.warn("waiting for the API server: " + message);
  told_ = std::move(message);
}

Task<std::vector<k8s::Node>> select_nodes(Tools tools, std::string selector, TimePoint deadline) {
  CO_TRY(auto list, co_await ask<k8s::List<k8s::Node>>(
                        tools, deadline, [&](TimePoint until) { return tools.client.list_nodes(selector, until); }));
  co_return std::move(list.items);
}

Task<std::vector<k8s::Node>> named_nodes(Tools tools, std::vector<std::string> names, Duration limit) {
  std::vector<k8s::Node> nodes;
  std::vector<std::string> absent;
  for (const std::string& name : names) {
    auto node = co_await ask<k8s::Node>(tools, saturating_add(tools.clock.now(), limit),
                                        [&](TimePoint until) { return tools.client.get_node(name, until); });
    if (node)
      nodes.push_back(*std::move(node));
    else if (k8s::is_gone(node.error()))
      absent.push_back(name);
    else
      co_return std::move(node).error().with_context("node/" + name);
  }
  if (!absent.empty()) co_return missing(absent);
  co_return nodes;
}

Error about_node(Error error, const std::string& node) {
  if (!k8s::is_gone(error)) return std::move(error).with_context("node/" + node);
  return not_there(fmt::format("node {} does not exist in this cluster (kubectl get nodes lists the nodes)", node));
}

Task<std::vector<std::string>> resolve_nodes(Tools tools, Settings settings, TimePoint deadline) {
  if (settings.selector.empty()) co_return settings.nodes;
  CO_TRY(const auto nodes, co_await select_nodes(tools, settings.selector, deadline));
  if (nodes.empty()) co_return not_there(no_match(settings.selector));
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const k8s::Node& node : nodes) names.push_back(node.name);
  co_return names;
}

std::string no_match(const std::string& selector) {
  return fmt::format("no node matches the selector \"{}\"; 'kubectl get nodes --show-labels' shows the labels",
                     selector);
}

int report_failure(const Tools& tools, const Error& error) {
  tools.console.warn("error: " + printable(error.message()));
  for (const std::string& line : advice(error, tools.ledger.last_denied())) tools.console.warn(line);
  return agent::exit_code(error);
}

}  // namespace haulout::cli
