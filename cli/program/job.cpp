#include "cli/program/job.hpp"

#include <fmt/format.h>

#include "agent/process/exit_code.hpp"
#include "base/text.hpp"
#include "k8s/status.hpp"

namespace haulout::cli {

namespace {

// Returns true if the denied request caused the error. A drain may be denied optional rights (budgets, DaemonSets)
// before it is denied the right without which it fails.
bool is_about(const Error& error, const agent::RequestInfo& denied) {
  const std::string& kind = error.peer->kind;
  return !denied.resource.empty() &&
         (kind.empty() || kind == denied.resource || kind == denied.resource + "/" + denied.subresource);
}

}  // namespace

std::string way_out(const Error& error) {
  switch (error.code()) {
    case Errc::dns: return "check the server's name in the kubeconfig ('kubectl config view --minify') and your DNS";
    case Errc::unreachable:
      return "check that the API server runs, and check its address ('kubectl config view --minify')";
    case Errc::timeout: return "the API server is slow or unreachable; a firewall may be in between";
    case Errc::tls:
      return "the certificate must be signed by the kubeconfig's certificate-authority and bear the server's name "
             "(--certificate-authority, --tls-server-name); an expired client certificate must be renewed";
    case Errc::reset: return "try again; if it persists, look for a proxy or load balancer in between";
    case Errc::protocol:
    case Errc::decode:
      return "check that the address is a Kubernetes API server's; a proxy or a login page may have answered instead";
    case Errc::status:
      if (error.is_status(401)) return "the credentials were not accepted; they may have expired: log in again";
      if (error.is_status(403)) return "let an administrator add the right:";
      return "";
    case Errc::unavailable:
    case Errc::invalid: return "";  // these messages contain their own remedy
  }
  return "";
}

std::string rbac_hint(std::string_view verb, std::string_view group, std::string_view resource,
                      std::string_view subresource) {
  return fmt::format("- apiGroups: [\"{}\"]\n  resources: [\"{}{}{}\"]\n  verbs: [\"{}\"]\n", group, resource,
                     subresource.empty() ? "" : "/", subresource, verb);
}

std::string rbac_of_drain() {
  return R"(apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: haulout-drain
rules:
- apiGroups: [""]
  resources: ["nodes"]
  verbs: ["get", "list", "watch", "patch"]
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["list", "watch"]  # --disable-eviction needs delete, too
- apiGroups: [""]
  resources: ["pods/eviction"]
  verbs: ["create"]
- apiGroups: ["apps"]
  resources: ["daemonsets"]
  verbs: ["get"]
- apiGroups: ["policy"]
  resources: ["poddisruptionbudgets"]
  verbs: ["list", "watch"]
# with --max-unavailable-per-controller, --canary or --single-replica (of other kinds their RESOURCE/scale, too):
- apiGroups: ["apps"]
  resources: ["deployments", "replicasets", "statefulsets"]
  verbs: ["get"]
# with --wait-volumes or --serialize-volumes:
- apiGroups: ["storage.k8s.io"]
  resources: ["volumeattachments"]
  verbs: ["list", "watch"]
- apiGroups: [""]
  resources: ["persistentvolumes", "persistentvolumeclaims"]
  verbs: ["get"]
)";
}

std::vector<std::string> advice(const Error& error, const std::optional<agent::RequestInfo>& denied) {
  std::vector<std::string> lines;
  const std::string way = way_out(error);
  if (!way.empty()) lines.push_back(way);
  if (!error.is_status(403)) return lines;
  lines.push_back(denied && is_about(error, *denied)
                      ? rbac_hint(denied->verb, denied->group, denied->resource, denied->subresource)
                      : rbac_of_drain());
  lines.back().pop_back();  // the caller adds the line break
  return lines;
}

namespace {

// How long a command waits for the API server before it prints that. A drain has the same limit.
constexpr Duration worth_a_word = std::chrono::seconds(5);

// Returns the error that the API server returns for an object that does not exist, with this message.
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
