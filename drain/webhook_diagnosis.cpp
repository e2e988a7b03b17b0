#include "drain/webhook_diagnosis.hpp"

#include <fmt/format.h>

#include "drain/diagnoses.hpp"
#include "drain/reasons.hpp"
#include "drain/text.hpp"

namespace haulout::drain {

namespace {

constexpr std::string_view configurations = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations";

std::string state_of(const k8s::Pod& pod) {
  if (pod.ready) return "Ready";
  return pod.trouble.empty() ? "not Ready" : fmt::format("not Ready ({})", pod.trouble);
}

// Returns text about a pod of the webhook's Service on this node, since the drain itself may have evicted that pod.
std::string servers_here(const WebhookCase& about, const k8s::Service& service) {
  const TrackedPod* here = nullptr;
  const TrackedPod* left = nullptr;
  for (const auto& [uid, tracked] : about.pods) {
    if (!service.selects(tracked.pod)) continue;
    const bool leaves = tracked.state == PodState::vanished || tracked.state == PodState::terminating;
    (leaves ? left : here) = &tracked;
  }
  if (here) return fmt::format("; their pod {} is on this node, {}", here->pod.key(), state_of(here->pod));
  if (!left) return {};
  return fmt::format(
      "; their pod {} {} this node before pods that the webhook checks: with the annotation {}: \"1\" it is evicted "
      "after them",
      left->pod.key(), left->state == PodState::vanished ? "has left" : "is leaving", drain_order_annotation);
}

std::string way_to_its_servers(const WebhookCase& about) {
  if (!about.service) return "check that the pods behind its Service run";
  if (!*about.service)
    return fmt::format(
        "its Service {} does not exist: if its application was removed, have the webhook's configuration deleted",
        about.held.front()->refusal.webhook->service);
  const k8s::Service& service = **about.service;
  if (!service.selector) return fmt::format("check that the endpoints of its Service {} run", service.key());
  return fmt::format("check that the pods behind its Service {} run (kubectl get pods -n {} -l '{}' -o wide){}",
                     service.key(), service.ns, k8s::to_string(*service.selector), servers_here(about, service));
}

}  // namespace

DiagnosisFact diagnose_webhook(const WebhookCase& about) {
  const TrackedPod& first = *about.held.front();
  const WebhookRefusal& refusal = *first.refusal.webhook;
  const std::string whom = one_of(first.pod.key(), about.held.size());
  const std::string subject = "webhook " + refusal.name;
  if (refusal.down)
    return {reason::webhook_down, subject,
            fmt::format("the API server cannot call it, so it refuses the eviction of {} ({}); {}; or have its "
                        "failurePolicy changed ({})",
                        whom, refusal.words, way_to_its_servers(about), configurations),
            controller_hold, drain::about(about.held)};
  return {reason::webhook_denied, subject,
          fmt::format("it denies the eviction of {} ({}), which may mean \"not yet\". If this lasts, ask the owner of "
                      "the webhook ({})",
                      whom, refusal.words, configurations),
          controller_hold, drain::about(about.held)};
}

}  // namespace haulout::drain
