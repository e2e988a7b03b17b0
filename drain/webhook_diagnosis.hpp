// Why an admission webhook lets pods not be evicted, and the way out. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drain/diagnosis_fact.hpp"
#include "drain/pipeline.hpp"

namespace haulout::drain {

struct WebhookCase {
  std::vector<const TrackedPod*> held;  // that it denies, or that were refused as it could not be called; not empty
  const std::map<std::string, TrackedPod>& pods;  // all that were seen on this node, those that have left it among them
  // Behind which its servers stand; nullptr: not known, nullopt: it does not exist.
  const std::optional<k8s::Service>* service = nullptr;
};

DiagnosisFact diagnose_webhook(const WebhookCase& about);

}  // namespace haulout::drain
