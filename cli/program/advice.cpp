#include "cli/program/advice.hpp"

#include <fmt/format.h>

namespace haulout::cli {

namespace {

// Whether the denied request is the one that caused the error. A drain may be denied optional rights (budgets,
// DaemonSets) before it is denied the right that ends it.
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
  lines.back().pop_back();  // the caller prints each line with a line break of its own
  return lines;
}

}  // namespace haulout::cli
