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
  if (here) return fmt::format("; pod {} of them is on this node, {}", here->pod.key(), state_of(here->pod));
  if (!left) return {};
  return fmt::format(
      "; pod {} of them {} this node before pods that it judges: the annotation {}: \"1\" lets it go after them",
      left->pod.key(), left->state == PodState::vanished ? "has left" : "is leaving", drain_order_annotation);
}

std::string way_to_its_servers(const WebhookCase& about) {
  if (!about.service) return "see that the pods behind its Service run";
  if (!*about.service)
    return fmt::format(
        "its Service {} does not exist: if what it belonged to is gone for good, have its configuration "
        "deleted",
        about.held.front()->refusal.webhook->service);
  const k8s::Service& service = **about.service;
  if (!service.selector) return fmt::format("see that what stands behind its Service {} runs", service.key());
  return fmt::format("see that the pods behind its Service {} run (kubectl get pods -n {} -l '{}' -o wide){}",
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
            fmt::format("it cannot be called, so the server refuses the eviction of {} ({}); {}; or have its "
                        "failurePolicy changed ({})",
                        whom, refusal.words, way_to_its_servers(about), configurations),
            controller_hold, drain::about(about.held)};
  return {reason::webhook_denied, subject,
          fmt::format("it denies the eviction of {} ({}); that may be its way to say \"not yet\". If it stays, ask the "
                      "owner of the webhook ({})",
                      whom, refusal.words, configurations),
          controller_hold, drain::about(about.held)};
}

}  // namespace haulout::drain
