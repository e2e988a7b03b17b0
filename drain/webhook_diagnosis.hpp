// The diagnosis of an admission webhook that prevents evictions, with the remedy. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drain/diagnosis_fact.hpp"
#include "drain/pipeline.hpp"

namespace haulout::drain {

struct WebhookCase {
  // Pods whose eviction the webhook denied, or was refused because the webhook could not be called. Not empty.
  std::vector<const TrackedPod*> held;
  const std::map<std::string, TrackedPod>& pods;  // all pods seen on this node, also deleted ones, by UID
  // The Service in front of the webhook's servers. nullptr: not known. nullopt: it does not exist.
  const std::optional<k8s::Service>* service = nullptr;
};

DiagnosisFact diagnose_webhook(const WebhookCase& about);

}  // namespace haulout::drain
