// How an agent finds its API server: --kubeconfig, $KUBECONFIG, the pod's ServiceAccount, the kubelet's kubeconfig.
// Unlike the commands it never reads ~/.kube/config: that is a person's credential, and likely to be root's on a node.
#pragma once

#include <string>
#include <vector>

#include "k8s/credentials.hpp"

namespace haulout::agent {

// Where distributions keep the kubelet's kubeconfig: kubeadm; EKS and others; Bottlerocket; k3s; RKE2.
std::vector<std::string> kubelet_kubeconfigs();

// The first source that is given or there counts; when it is broken, that is an error, and no other is tried. Errors:
// those of k8s::discover(); Errc::unavailable with the way out when there is none at all. `kubelet_files` are paths of
// this process, and what stands in such a file, too: the kubelet's credentials are for an agent on the host itself.
Result<k8s::Connection> agent_connection(const k8s::ConnectionFlags& flags, const k8s::Environment& environment,
                                         const std::vector<std::string>& kubelet_files = kubelet_kubeconfigs());

}  // namespace haulout::agent
