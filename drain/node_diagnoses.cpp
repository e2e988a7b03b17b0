#include "drain/node_diagnoses.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "drain/reasons.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {

namespace {

bool only_own_pod_left(const Pipeline& pipeline, const std::string& own_uid) {
  const auto own = pipeline.pods().find(own_uid);
  if (own_uid.empty() || own == pipeline.pods().end() || !must_leave(own->second.state)) return false;
  return std::none_of(pipeline.pods().begin(), pipeline.pods().end(),
                      [&](const auto& entry) { return entry.first != own_uid && must_leave(entry.second.state); });
}

void diagnose_clock(const NodeFacts& node, std::vector<DiagnosisFact>& facts) {
  const bool behind = node.server_ahead > Duration::zero();
  const Duration skew = behind ? node.server_ahead : -node.server_ahead;
  if (skew <= clock_skew_limit) return;
  facts.push_back(
      {reason::clock_skew,
       "clock",
       fmt::format("the clock of this machine is {} s {} the API server's, so the times shown here are wrong by as "
                   "much, and tokens and certificates may be rejected. Set the clock (timedatectl, chronyc tracking)",
                   std::chrono::duration_cast<std::chrono::seconds>(skew).count(), behind ? "behind" : "ahead of"),
       controller_hold,
       {.holds = false}});
}

}  // namespace

DiagnosisFact diagnose_not_ready(const std::string& node) {
  return {reason::kubelet_not_ready, "node " + node,
          fmt::format(
              "its kubelet does not report it Ready, and pods are not deleted without a kubelet; repair the kubelet "
              "(systemctl status kubelet on the node). If the machine is lost, delete the Node: its pods are then "
              "deleted, too. To leave terminating pods behind: haulout drain {} --skip-wait-for-delete-timeout=1",
              node),
          controller_hold};
}

void diagnose_node(const Pipeline& pipeline, const NodeFacts& node, std::vector<DiagnosisFact>& facts) {
  const std::string subject = "node " + node.name;
  if (node.gone)
    facts.push_back(
        {reason::node_gone, subject, "the Node was deleted or replaced, so its pods are not evicted any more", {}});
  if (!node.gone && node.expect_cordon && !node.unschedulable)
    facts.push_back(
        {reason::uncordoned,
         subject,
         fmt::format("the node was uncordoned{}: no pod is evicted until it is cordoned again (kubectl cordon {})",
                     node.unschedulable_manager.empty() ? "" : " (last writer: " + node.unschedulable_manager + ")",
                     node.name),
         {}});
  // A single 403 right after a reconnect proves nothing, so this diagnosis has a hold time.
  if (node.pods_error && k8s::is_forbidden(*node.pods_error))
    facts.push_back(
        {reason::right_missing, subject,
         fmt::format("{}; grant verbs list and watch on resource pods (API group \"\")", node.pods_error->message()),
         controller_hold});
  if (!node.gone && !node.ready && !pipeline.clear()) facts.push_back(diagnose_not_ready(node.name));
  if (only_own_pod_left(pipeline, node.own_uid))
    facts.push_back({reason::only_own_pod_left, subject,
                     "only the pod that Haulout itself runs in is left, and it cannot wait for its own deletion; run "
                     "it as a DaemonSet pod, or from another node",
                     controller_hold});
  diagnose_clock(node, facts);
}

}  // namespace haulout::drain
