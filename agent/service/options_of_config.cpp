#include "agent/service/options_of_config.hpp"

#include "agent/node/own_pool.hpp"
#include "agent/service/make_slots.hpp"

namespace haulout::agent {

drain::Options drain_options_of(const AgentConfig& config) {
  drain::Options options;
  options.policy.empty_dir = config.emptydir;
  options.policy.unmanaged = config.unmanaged;
  options.policy.finished = config.finished;
  options.policy.do_not_disrupt = config.ignore_do_not_disrupt ? drain::Treatment::evict : drain::Treatment::park;
  options.policy.pinned = config.pinned;
  for (const std::string& text : config.leave_pods)
    if (auto selector = k8s::parse_label_selector(text)) options.policy.leave.push_back(*std::move(selector));
  options.max_concurrent = config.max_concurrent;
  for (const std::string& text : config.drain_order)
    if (auto rule = drain::parse_order_rule(text)) options.order.push_back(*std::move(rule));
  options.settle = config.settle;
  options.fit = config.check_fit;
  options.volumes = config.wait_volumes ? drain::VolumeWait::if_permitted : drain::VolumeWait::off;
  options.volume_limit = config.volume_limit;
  options.end_at_volume_limit = config.end_at_volume_limit;
  options.volume_turns = config.serialize_volumes ? drain::VolumeWait::if_permitted : drain::VolumeWait::off;
  options.reattach_limit = config.reattach_limit;
  if (!config.max_unavailable_per_controller.empty())
    if (const auto share = drain::parse_share(config.max_unavailable_per_controller))
      options.guards.max_unavailable = *share;
  options.guards.single_replica = config.single_replica;
  options.guards.canary = config.canary;
  if (config.drain_deadline != Duration::zero()) options.timeout = config.drain_deadline;
  // The agent checks its rights at the start. An access review would be wrong for most of an agent's identities.
  options.review_access = false;
  return options;
}

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
  options.drain = drain_options_of(config);
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
