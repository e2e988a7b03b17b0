#include "agent/authority/agent_connection.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "agent/text.hpp"

namespace haulout::agent {

std::vector<std::string> kubelet_kubeconfigs() {
  return {"/etc/kubernetes/kubelet.conf", "/var/lib/kubelet/kubeconfig", "/etc/kubernetes/kubelet/kubeconfig",
          "/var/lib/rancher/k3s/agent/kubelet.kubeconfig", "/var/lib/rancher/rke2/agent/kubelet.kubeconfig"};
}

Result<k8s::Connection> agent_connection(const k8s::ConnectionFlags& flags, const k8s::Environment& environment,
                                         const std::vector<std::string>& kubelet_files) {
  k8s::Environment without_home = environment;
  without_home.home.clear();
  const bool in_a_pod = !environment.get("KUBERNETES_SERVICE_HOST").empty();
  const bool named = !flags.kubeconfig.empty() || !flags.server.empty() || !environment.get("KUBECONFIG").empty();
  if (named || in_a_pod) return k8s::discover(flags, without_home);
  for (const std::string& file : kubelet_files) {
    std::error_code unreadable;
    if (!std::filesystem::exists(file, unreadable) && !unreadable) continue;
    k8s::ConnectionFlags of_kubelet = flags;
    of_kubelet.kubeconfig = file;
    return k8s::discover(of_kubelet, without_home);
  }
  return Error(
      Errc::unavailable,
      fmt::format("no API server to talk to: kubeconfig is not given, $KUBECONFIG is not set, this is no pod, and "
                  "no kubelet has its kubeconfig here ({}); name one with kubeconfig",
                  joined(kubelet_files, ", ")));
}

}  // namespace haulout::agent
