#include <fmt/format.h>
#include <algorithm>

#include "audit/findings.hpp"
#include "k8s/codec.hpp"
#include "rehearse/world_json.hpp"

namespace haulout::audit {
namespace {

using sim::Json;

enum class Servers { run, none_ready, no_service, unknown };

Servers servers_of(const World& world, const Json& webhook) {
  const std::string ns = sim::text(webhook, "/clientConfig/service/namespace");
  const std::string name = sim::text(webhook, "/clientConfig/service/name");
  // Services are optional in a snapshot. Without any, nothing is known about them.
  if (name.empty() || world.store().list("services").empty()) return Servers::unknown;
  const sim::Object object = world.store().get({"services", ns, name});
  if (!object) return Servers::no_service;
  const auto service = k8s::decode<k8s::Service>(object->dump());
  if (!service || !service->selector) return Servers::unknown;
  const bool any = std::ranges::any_of(world.pods, [&](const WorldPod& pod) {
    return pod.pod.ready && !pod.pod.terminating() && service->selects(pod.pod);
  });
  return any ? Servers::run : Servers::none_ready;
}

std::string state_of(Servers servers, const std::string& service) {
  switch (servers) {
    case Servers::none_ready: return fmt::format("; its Service {} has no Ready pod", service);
    case Servers::no_service: return fmt::format("; its Service {} does not exist", service);
    case Servers::run:
    case Servers::unknown: return {};
  }
  return {};
}

void judge(const World& world, const std::string& kind, const Json& configuration, const Json& webhook,
           Findings& findings) {
  const bool fails = sim::text(webhook, "/failurePolicy") != "Ignore";  // the API's default is Fail
  const Servers servers = servers_of(world, webhook);
  const bool down = servers == Servers::none_ready || servers == Servers::no_service;
  if (!fails && !down) return;
  const std::string service =
      sim::text(webhook, "/clientConfig/service/namespace") + "/" + sim::text(webhook, "/clientConfig/service/name");
  Finding finding{.id = "WebhookOnEvictions",
                  .severity = fails && down ? Severity::blocks
                              : fails       ? Severity::risk
                                            : Severity::note,
                  .object = kind + "/" + sim::name_of(configuration) + "/" + sim::text(webhook, "/name")};
  finding.text = fmt::format(
      "the server asks webhook {} about every eviction that it matches, and {} while the webhook does "
      "not answer{}",
      sim::text(webhook, "/name"), fails ? "refuses it" : "delays it", state_of(servers, service));
  finding.way_out =
      down ? fmt::format("repair the servers of the webhook, or delete its configuration (kubectl get {} {})", kind,
                         sim::name_of(configuration))
           : "run its servers on several nodes, protect them by a PodDisruptionBudget, and exclude "
             "pods/eviction from its rules if it does not need it";
  findings.add({.kind = "Cluster"}, std::move(finding));
}

}  // namespace

void find_webhooks(const World& world, Findings& findings) {
  for (const auto& [resource, kind] : {std::pair{"mutatingwebhookconfigurations", "MutatingWebhookConfiguration"},
                                       std::pair{"validatingwebhookconfigurations", "ValidatingWebhookConfiguration"}})
    for (const sim::Object& configuration : world.store().list(resource))
      for (const Json& webhook : sim::at(*configuration, "/webhooks"))
        if (rehearse::is_asked_about_evictions(webhook)) judge(world, kind, *configuration, webhook, findings);
}

}  // namespace haulout::audit
