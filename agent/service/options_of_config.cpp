#include "agent/service/options_of_config.hpp"

#include <fmt/format.h>

#include "agent/node/pool.hpp"
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
  times.update_limit = config.update_limit;
  times.reboot_limit = config.reboot_limit;
  times.verify_limit = config.verify_limit;
  times.soak = config.soak;
  return times;
}

AgentOptions agent_options_of(const AgentConfig& config) {
  AgentOptions options;
  options.drain = config.drain;
  options.times = times_of(config);
  options.update_attempts = config.update_attempts;
  for (const std::string& text : config.verify_conditions)
    // The check of the option has refused all texts that are not conditions.
    if (auto condition = parse_condition(text)) options.conditions.push_back(*std::move(condition));
  options.stages_first = config.update == UpdateChoice::before_drain;
  options.ramp = !config.ramp.empty() || config.halt_after > 0;
  options.hooks = {config.hook_limit, config.hook_failure == HookFailure::stop};
  options.lb_drain_wait = config.lb_drain_wait;
  options.hold_autoscalers = config.hold_autoscalers;
  // The check of the option has refused all other texts.
  if (auto taint = parse_waiting_taint(config.waiting_taint)) options.waiting_taint = *std::move(taint);
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

Result<NodeGatesOptions> gates_of_config(const AgentConfig& config, std::string node,
                                         std::function<OwnPool(const k8s::Node&)> own_pool) {
  std::vector<Window> windows;
  for (const std::string& text : config.windows) {
    auto window = parse_window(text);
    if (!window) return std::move(window).error().with_context(fmt::format("--window \"{}\"", text));
    windows.push_back(*std::move(window));
  }
  std::vector<Blackout> blackouts;
  for (const std::string& text : config.blackouts) {
    auto blackout = parse_blackout(text);
    if (!blackout) return std::move(blackout).error().with_context(fmt::format("--blackout \"{}\"", text));
    blackouts.push_back(*std::move(blackout));
  }
  NodeGatesOptions options{.node = std::move(node),
                           .ns = config.ns,
                           .own_pool = std::move(own_pool),
                           .schedule = Schedule(std::move(windows), std::move(blackouts)),
                           .cordoned_nodes = config.cordoned_nodes,
                           .reboots_per_day = config.max_reboots_per_day,
                           .installs = config.update != UpdateChoice::off,
                           .halt_after = std::max<std::size_t>(1, config.halt_after),
                           .pin = config.pin,
                           .blocking_pod_selectors = config.blocking_pod_selectors};
  options.alerts = {.query = config.prometheus_query,
                    .fail_open = config.prometheus_fail_mode == FailMode::open,
                    .max_age = config.prometheus_max_age,
                    .username = config.prometheus_username,
                    .password_file = config.prometheus_password_file};
  return options;
}

Result<std::unique_ptr<k8s::AuthTransport>> prometheus_transport(boost::asio::any_io_executor executor, Clock& clock,
                                                                 const AgentConfig& config, std::string user_agent) {
  if (config.prometheus_url.empty()) return std::unique_ptr<k8s::AuthTransport>();
  k8s::Connection connection;
  auto endpoint = http::parse_endpoint(config.prometheus_url, &connection.path_prefix);
  if (!endpoint) return std::move(endpoint).error().with_context("--prometheus-url");
  connection.endpoint = *std::move(endpoint);
  connection.ca.file = config.prometheus_ca_file;
  connection.client_cert.file = config.prometheus_cert_file;
  connection.client_key.file = config.prometheus_key_file;
  connection.token.file = config.prometheus_token_file;
  connection.origin = "--prometheus-url " + config.prometheus_url;
  return k8s::AuthTransport::create(std::move(executor), clock, std::move(connection), std::move(user_agent));
}

}  // namespace haulout::agent
