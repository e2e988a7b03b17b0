// Classifies the server's answer to an eviction: first by the reason and causes in the answer, then by its HTTP code.
// The message decides only where the API provides nothing else; comments in the code mark these cases. Pure.
#pragma once

#include <optional>
#include <string>

#include "retry/backoff.hpp"
#include "retry/task.hpp"

namespace haulout::drain {

enum class EvictionVerdict {
  accepted,        // 2xx: wait until the pod is deleted
  gone,            // the pod or its namespace does not exist any more
  budget,          // a PodDisruptionBudget allows no disruption now
  overlap,         // several PodDisruptionBudgets select the pod: the server refuses until a person changes them
  admission,       // a webhook or policy denies it, perhaps only until it has finished some work
  ns_terminating,  // the namespace is terminating; its deletion will delete the pod
  throttle,        // the whole client must slow down: the server throttles it or is unreachable
  retry,           // a transient failure of this pod's request; a retry is safe (UID precondition)
  replaced,        // the server's pod of this name has another UID or another node; wait for the watch event
  forbidden,       // an authorizer refuses the request
  fatal,           // this request can never succeed: wrong endpoint, malformed, not supported
};

EvictionVerdict classify_eviction(const Error& error);

// A refusal by an admission webhook: it denied the eviction, or could not be called.
struct WebhookRefusal {
  std::string name;   // as in the webhook configuration
  bool down = false;  // the server could not call the webhook
  std::string words;  // the server's message
  // "ns/name" of the Service that could not be called; empty if the message names none.
  std::string service{};
};
std::optional<WebhookRefusal> webhook_refusal(const Error& error);

// Returns the name of the ValidatingAdmissionPolicy in the message of a denial; empty if there is none.
std::string admission_policy(const std::string& message);

// Returns the part of the answer that describes the budget (its name and numbers); empty if there is none.
std::string budget_refusal(const Error& error);

// Returns the backoff after an answer of this class. For budgets it starts at kubectl's 5 s. The delays for `overlap`,
// `fatal`, and the second `forbidden` in a row are long, because only a person can resolve these.
BackoffOptions backoff_after(EvictionVerdict verdict);
// Returns the reason with which the pod is parked: "BlockedByBudget", "AdmissionDenied", …
std::string_view park_reason(EvictionVerdict verdict);

}  // namespace haulout::drain
