#include "agent/service/rivals.hpp"

#include <fmt/format.h>

#include "agent/dbus/bus_rivals.hpp"
#include "agent/hosts/apt_conf.hpp"

namespace haulout::agent {
namespace {

constexpr std::string_view automatic_reboot = "Unattended-Upgrade::Automatic-Reboot";

struct PodRival {
  const char* key;
  const char* value;
  const char* name;
  const char* does;
};

// The labels that the manifests and charts of these programs set on their pods.
constexpr PodRival pod_table[] = {
    {"name", "kured", "kured", "reboots nodes when /var/run/reboot-required exists"},
    {"app.kubernetes.io/name", "kured", "kured", "reboots nodes when /var/run/reboot-required exists"},
    {"app", "flatcar-linux-update-agent", "the Flatcar Linux Update Operator's agent", "reboots nodes after updates"},
    {"brupop.bottlerocket.aws/component", "agent", "the Bottlerocket update operator's agent",
     "updates and reboots Bottlerocket nodes"},
};

void add(Result<std::vector<std::string>> some, const char* what, Rivals& rivals) {
  if (!some) {
    rivals.problems.push_back(std::move(some).error().with_context(what).message());
    return;
  }
  for (std::string& one : *some) rivals.found.push_back(std::move(one));
}

}  // namespace

std::vector<std::string> pod_rivals(const std::vector<k8s::Pod>& pods) {
  std::vector<std::string> out;
  for (const k8s::Pod& pod : pods) {
    if (pod.finished() || !pod.controller || pod.controller->kind != "DaemonSet") continue;
    for (const PodRival& rival : pod_table) {
      const auto label = pod.labels.find(rival.key);
      if (label == pod.labels.end() || label->second != rival.value) continue;
      out.push_back(fmt::format(
          "{} runs on this node (pod {}): it {} without a slot; remove it: kubectl delete daemonset -n {} {}",
          rival.name, pod.key(), rival.does, pod.ns, pod.controller->name));
      break;
    }
  }
  return out;
}

Result<std::vector<std::string>> file_rivals(const HostRoot& root) {
  auto value = read_apt_option(root, automatic_reboot);
  if (!value) return std::move(value).error();
  std::vector<std::string> out;
  if (*value && apt_true(**value))
    out.push_back(fmt::format(
        "unattended-upgrades may reboot: {} is \"{}\" below {}, so it reboots without a slot; set it to \"false\"",
        automatic_reboot, **value, root.display("/etc/apt")));
  return out;
}

boost::asio::awaitable<Rivals> find_rivals(k8s::Client& client, std::string node, const HostAccess& host, bool ask_bus,
                                           TimePoint deadline) {
  Rivals rivals;
  add(file_rivals(host.root), "competing updaters in the host's files", rivals);
  auto pods = co_await client.list_pods_on(node, deadline);
  using Sentences = Result<std::vector<std::string>>;
  add(pods ? Sentences(pod_rivals(pods->items)) : Sentences(std::move(pods).error()),
      "competing updaters among the node's pods", rivals);
  // The bus comes last, because a missing bus uses up the time until the deadline.
  if (ask_bus) add(co_await bus_rivals(host.bus, deadline), "competing updaters among the host's services", rivals);
  co_return rivals;
}

}  // namespace haulout::agent
