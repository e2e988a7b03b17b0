#include "agent/service/options_of_config.hpp"

#include "agent/node/own_pool.hpp"
#include "agent/service/make_slots.hpp"

namespace haulout::agent {

void suit_volumes(drain::Options& options, bool permitted) {
  for (drain::VolumeWait* wait : {&options.volumes, &options.volume_turns})
    if (*wait != drain::VolumeWait::off) *wait = permitted ? drain::VolumeWait::required : drain::VolumeWait::off;
}

LifecycleTimes times_of(const AgentConfig& config) {
  LifecycleTimes times;
  times.backoff = config.backoff;
  times.backoff_cap = std::max(times.backoff_cap, config.backoff);
  times.reboot_limit = config.reboot_limit;
  times.verify_limit = config.verify_limit;
  times.soak = config.soak;
  return times;
}

AgentOptions agent_options_of(const AgentConfig& config) {
  AgentOptions options;
  options.drain = config.drain;
  options.times = times_of(config);
  options.hooks = {config.hook_limit, config.hook_failure == HookFailure::stop};
  options.lb_drain_wait = config.lb_drain_wait;
  options.pool = [&config](const k8s::Node& node) {
    return config.pool_label == pool_label ? std::string() : own_pool(config, node).name;
  };
  return options;
}

std::vector<std::string> kubelet_kubeconfigs(const std::string& host_root) {
  const std::string root = host_root == "/" ? "" : host_root;
  return {root + "/etc/kubernetes/kubelet.conf", root + "/var/lib/kubelet/kubeconfig",
          root + "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
          root + "/var/lib/rancher/rke2/agent/kubelet.kubeconfig"};
}

}  // namespace haulout::agent
