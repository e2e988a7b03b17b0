#include "agent/gates/fleet_health.hpp"

#include <fmt/format.h>

#include "agent/gates/reboot_brake.hpp"
#include "agent/gates/until_differs.hpp"
#include "agent/gates/waiting.hpp"
#include "agent/node/node_status.hpp"
#include "agent/node/pool_member.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// Returns the last reboot of a degraded node if the node has not become well after it.
std::optional<PastReboot> failed_reboot(const k8s::Node& node) {
  const std::optional<Record> record = record_of(node);
  if (!record) return std::nullopt;
  // If `uncordon` is true, the node itself is well: only its reboot did not happen.
  if (record->state != State::degraded || record->uncordon || record->reboots.empty()) return std::nullopt;
  PastReboot reboot = record->reboots.back();
  reboot.cleared = false;  // the reboot has failed even if that node needs no further reboot
  return reboot;
}

std::string named(const Pending& wanted) {
  return wanted.target.empty() ? "its update (" + printable(joined(wanted.reasons, ", ")) + ")"
                               : "version " + printable(wanted.target);
}

}  // namespace

Gate fleet_gate(const std::vector<k8s::Node>& degraded, const std::string& own, const Pending& wanted) {
  Gate gate{.name = "fleet", .message = "this update has failed on no other node of the pool"};
  const bool is_named = !wanted.target.empty() || !wanted.reasons.empty();
  if (wanted.need != Need::yes || !is_named) return gate;
  for (const k8s::Node& node : degraded) {
    const auto failed = node.name == own ? std::nullopt : failed_reboot(node);
    if (!failed || !same_need(*failed, wanted)) continue;
    const auto reason = node.labels.find(std::string(reason_label));
    gate.verdict = Gate::Verdict::closed;
    gate.reason = reason::update_failed_elsewhere;
    gate.message = fmt::format(
        "node {} has been degraded{} since its reboot for {}, which this node needs, too: repair that node first",
        node.name, reason == node.labels.end() ? "" : " (" + printable(reason->second) + ")", named(wanted));
    return gate;
  }
  return gate;
}

void FleetHealth::belong_to(OwnPool pool) {
  pool_ = std::move(pool);
  selector_ = fmt::format("{}={}{}{}", state_label, to_string(State::degraded), pool_.node_selector.empty() ? "" : ",",
                          pool_.node_selector);
}

Task<std::vector<k8s::Node>> FleetHealth::list(TimePoint deadline) {
  CO_TRY(auto nodes, co_await respite_.ask([&] { return client_.list_nodes(selector_, deadline); }));
  was_readable_ = true;
  co_return std::move(nodes.items);
}

asio::awaitable<Gate> FleetHealth::judge(Pending wanted, TimePoint deadline) {
  auto nodes = co_await list(deadline);
  if (nodes) {
    seen_.clear();
    for (const k8s::Node& node : *nodes) seen_.insert(node.uid);
    std::erase_if(*nodes, [this](const k8s::Node& node) { return membership_of(node, pool_) == Membership::stranger; });
    co_return fleet_gate(*nodes, node_, wanted);
  }
  Gate gate{.name = "fleet"};
  if (k8s::is_forbidden(nodes.error()) && !was_readable_) {
    gate.verdict = Gate::Verdict::off;
    gate.message =
        "this credential may not list Nodes, so the agent does not notice updates that failed on other nodes";
    co_return gate;
  }
  gate.verdict = Gate::Verdict::closed;
  gate.reason = reason::fleet_unknown;
  gate.message = "the state of the other nodes of the pool is unknown: " + nodes.error().message();
  gate.look_again = soon(client_.clock(), rng_);
  co_return gate;
}

asio::awaitable<void> FleetHealth::changed() {
  k8s::ReflectorOptions options;
  options.label_selector = selector_;
  co_await until_differs<k8s::Node>(client_, rng_, respite_, options, [this](const k8s::Reflector<k8s::Node>& view) {
    std::set<std::string> degraded;
    for (const auto& [uid, node] : view.objects()) degraded.insert(uid);
    return degraded != seen_;
  });
}

}  // namespace haulout::agent
