#include "agent/service/warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "agent/dbus/bus_rivals.hpp"
#include "agent/gates/window.hpp"
#include "agent/hooks/hooks.hpp"
#include "agent/hosts/system_files.hpp"
#include "agent/node/pool.hpp"
#include "agent/service/make_slots.hpp"

namespace haulout::agent {
namespace {

// The settings of apt's daily job (/usr/lib/apt/apt.systemd.daily): whether it runs, and how often it installs
// packages.
constexpr std::string_view periodic_jobs = "APT::Periodic::Enable";
constexpr std::string_view periodic_upgrade = "APT::Periodic::Unattended-Upgrade";

bool waits_for_ever(const AgentConfig& config) {
  return config.slots == SlotsChoice::lease && !config.drain.timeout;
}

// Returns a warning if hooks cannot be seen: in a container that does not mount the host's directory, the agent would
// find no hook and pass each hook point (before-drain, after-drain, …) silently. Looks for the parent directory,
// because a host without hooks may lack the directory itself.
std::optional<std::string> unseen_hooks(const HostRoot& root, const std::string& hooks_dir) {
  const std::string parent = std::filesystem::path(hooks_dir).parent_path();
  const auto there = root.exists(parent);
  if (root.directory() == "/" || !there || *there) return std::nullopt;
  return fmt::format(
      "hooks of the host cannot run: the agent's container does not have {}; mount it from the host, or set hooks-dir "
      "to a mounted directory. Ignore this if you use no hooks",
      root.display(parent));
}

}  // namespace

std::optional<std::string> whole_pool_caution(const AgentConfig& config, std::optional<std::size_t> nodes) {
  const auto limit = parse_max_unavailable(config.max_unavailable);
  if (!waits_for_ever(config) || !limit) return std::nullopt;
  const bool whole = nodes ? *nodes > 1 && limit->of(*nodes) >= *nodes
                           : limit->unit == MaxUnavailable::Unit::percent && limit->value == 100;
  if (!whole) return std::nullopt;
  return fmt::format(
      "max-unavailable {} is the whole pool{}, and drain-deadline is not set: all nodes may be cordoned at once, so "
      "evicted pods may find no node, and budgets may block every drain for ever; lower max-unavailable, or set "
      "drain-deadline",
      config.max_unavailable, nodes ? fmt::format(" of {} nodes", *nodes) : "");
}

std::optional<std::string> halt_caution(const AgentConfig& config) {
  const auto limit = parse_max_unavailable(config.max_unavailable);
  const bool is_number = limit && limit->unit != MaxUnavailable::Unit::percent;
  if (config.slots != SlotsChoice::lease || !is_number || limit->value >= config.halt_after) return std::nullopt;
  return fmt::format(
      "max-unavailable {} is less than halt-after {}: degraded nodes keep their slots, so the failed nodes hold all "
      "slots before halt-after is reached, and the others wait with WaitingForSlot; raise max-unavailable, or lower "
      "halt-after",
      config.max_unavailable, config.halt_after);
}

std::vector<std::string> past_dates(const AgentConfig& config, WallTime now) {
  std::vector<std::string> out;
  for (const std::string& text : config.windows) {
    const auto window = parse_window(text);
    if (window && is_over(*window, now))
      out.push_back(fmt::format(
          "the window \"{}\" does not open any more, because its dates are past{}; remove it, or give it new dates",
          text, config.windows.size() == 1 ? ", and no update can begin" : ""));
  }
  for (const std::string& text : config.blackouts) {
    const auto blackout = parse_blackout(text);
    if (blackout && is_over(*blackout, now))
      out.push_back(fmt::format(
          "the blackout \"{}\" has no effect any more, because its dates are past; remove it, or give it new dates",
          text));
  }
  return out;
}

Result<std::optional<std::string>> second_updater(const AgentConfig& config, const HostRoot& root) {
  if (config.update == UpdateChoice::off) return std::optional<std::string>();
  auto enabled = read_apt_option(root, periodic_jobs);
  if (!enabled) return std::move(enabled).error();
  auto interval = read_apt_option(root, periodic_upgrade);
  if (!interval) return std::move(interval).error();
  if (!*interval || (*interval)->empty() || **interval == "0" || (*enabled && **enabled == "0"))
    return std::optional<std::string>();
  return std::optional(
      fmt::format("unattended-upgrades is configured to install packages, also while pods run: {} is \"{}\" below {}; "
                  "set it to \"0\", or set update to off",
                  periodic_upgrade, **interval, root.display("/etc/apt")));
}

boost::asio::awaitable<Cautions> find_cautions(k8s::Client& client, const AgentConfig& config, const HostRoot& root,
                                               k8s::Node node, TimePoint deadline) {
  Cautions cautions;
  std::optional<std::size_t> nodes;
  // Counts the nodes of the pool only if max-unavailable is a number of 2 or more, because only then
  // whole_pool_caution() needs the number. A limit of 1 never includes all of several nodes, and neither does a
  // percentage below 100, because it is rounded down. 100% always does.
  const OwnPool pool = own_pool(config, node);
  const auto limit = parse_max_unavailable(config.max_unavailable);
  if (waits_for_ever(config) && limit && limit->unit != MaxUnavailable::Unit::percent && limit->value > 1) {
    auto list = co_await client.list_nodes(pool.node_selector, deadline);
    if (list)
      nodes = std::count_if(list->items.begin(), list->items.end(), [&](const k8s::Node& each) {
        return each.name == node.name || membership_of(each, pool) != Membership::stranger;
      });
  }
  auto caution = is_control_plane(pool) ? std::nullopt : whole_pool_caution(config, nodes);
  if (caution) cautions.config.push_back(*std::move(caution));
  if (auto halt = is_control_plane(pool) ? std::nullopt : halt_caution(config))
    cautions.config.push_back(*std::move(halt));
  for (std::string& past : past_dates(config, client.clock().wall_now())) cautions.config.push_back(std::move(past));
  if (auto second = second_updater(config, root); second && *second) cautions.config.push_back(**std::move(second));
  cautions.hooks = misnamed_hooks(node);
  if (auto unseen = unseen_hooks(root, config.hooks_dir)) cautions.hooks.push_back(*std::move(unseen));
  if (auto stray = stray_hooks(root, config.hooks_dir))
    cautions.hooks.insert(cautions.hooks.end(), stray->begin(), stray->end());
  co_return cautions;
}

namespace {

constexpr std::string_view automatic_reboot = "Unattended-Upgrade::Automatic-Reboot";

struct PodRival {
  std::string_view controller;  // kind of the object that controls the pod
  std::string_view key;
  std::string_view value;  // empty: any
  std::string_view name;
  std::string_view does;
};

// The labels that the manifests and charts of these programs set on their pods, and that the system upgrade controller
// sets on the pods of its Jobs.
constexpr PodRival pod_table[] = {
    {"DaemonSet", "name", "kured", "kured", "reboots nodes when /var/run/reboot-required exists"},
    {"DaemonSet", "app.kubernetes.io/name", "kured", "kured", "reboots nodes when /var/run/reboot-required exists"},
    {"DaemonSet", "app", "flatcar-linux-update-agent", "the Flatcar Linux Update Operator's agent",
     "reboots nodes after updates"},
    {"DaemonSet", "brupop.bottlerocket.aws/component", "agent", "the Bottlerocket update operator's agent",
     "updates and reboots Bottlerocket nodes"},
    {"Job", "upgrade.cattle.io/plan", "", "a Plan of the system upgrade controller",
     "may cordon, drain, reboot and uncordon the node"},
};

bool is(const PodRival& rival, const k8s::Pod& pod) {
  if (pod.finished() || !pod.controller || pod.controller->kind != rival.controller) return false;
  const auto label = k8s::value_at(pod.labels, rival.key);
  return label && (rival.value.empty() || *label == rival.value);
}

// A Plan may be about something else than the operating system, such as an upgrade of k3s. Then it stays. If a Plan is
// deleted while its pod runs, the controller deletes the pod in the middle of its work.
std::string way_out(const PodRival& rival, const k8s::Pod& pod) {
  if (rival.controller == "DaemonSet")
    return fmt::format("remove it: kubectl delete daemonset -n {} {}", pod.ns, pod.controller->name);
  return fmt::format(
      "if it updates the operating system, remove it when this pod has ended: kubectl delete plans.upgrade.cattle.io "
      "-n {} {}; otherwise let the agent wait for such pods, with blocking-pod-selector {}",
      pod.ns, k8s::value_at(pod.labels, rival.key).value_or(""), rival.key);
}

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
    const auto* const rival = std::ranges::find_if(pod_table, [&](const PodRival& each) { return is(each, pod); });
    if (rival != std::end(pod_table))
      out.push_back(fmt::format("{} runs on this node (pod {}): it {} without waiting for a slot; {}", rival->name,
                                pod.key(), rival->does, way_out(*rival, pod)));
  }
  return out;
}

Result<std::vector<std::string>> file_rivals(const HostRoot& root) {
  auto value = read_apt_option(root, automatic_reboot);
  if (!value) return std::move(value).error();
  std::vector<std::string> out;
  if (*value && apt_true(**value))
    out.push_back(
        fmt::format("unattended-upgrades reboots the machine without waiting for a slot, because {} is \"{}\" below "
                    "{}; set that to \"false\"",
                    automatic_reboot, **value, root.display("/etc/apt")));
  return out;
}

boost::asio::awaitable<Rivals> find_rivals(k8s::Client& client, std::string node, const HostAccess& host, bool ask_bus,
                                           TimePoint deadline) {
  Rivals rivals;
  add(file_rivals(host.root), "the host's files cannot be searched for competing updaters", rivals);
  auto pods = co_await client.list_pods_on(node, deadline);
  using Sentences = Result<std::vector<std::string>>;
  add(pods ? Sentences(pod_rivals(pods->items)) : Sentences(std::move(pods).error()),
      "the node's pods cannot be searched for competing updaters", rivals);
  // The bus comes last, because a missing bus uses up the time until the deadline.
  if (ask_bus)
    add(co_await bus_rivals(host.bus, deadline), "the host's services cannot be searched for competing updaters",
        rivals);
  co_return rivals;
}

}  // namespace haulout::agent
