// What the answer to an eviction means. Pure: decided by the server's reason and causes first, then by its code, never
// by its sentences (exceptions where the API gives nothing else are marked in the code).
#pragma once

#include <optional>
#include <string>

#include "retry/backoff.hpp"
#include "retry/task.hpp"

namespace haulout::drain {

enum class EvictionVerdict {
  accepted,        // 2xx: wait for it to vanish
  gone,            // the pod, or its namespace, does not exist any more
  budget,          // a PodDisruptionBudget allows no disruption now
  overlap,         // more than one PodDisruptionBudget selects the pod: the server refuses until someone changes them
  admission,       // a webhook or policy denies it, perhaps for as long as it works on something
  ns_terminating,  // the namespace is dying and will delete the pod itself
  throttle,        // the server, or the way to it, asks the whole client to slow down
  retry,           // transient, for this pod alone; sending it again is safe (UID precondition)
  replaced,        // the server saw another UID under this name; the watch decides
  forbidden,       // an authorizer says no
  fatal,           // this request can never succeed: wrong endpoint, malformed, not supported
};

EvictionVerdict classify_eviction(const Error& error);

// An admission webhook said no, or could not be called.
struct WebhookRefusal {
  std::string name;  // as in its configuration
  bool down = false;
  std::string words;  // the server's
  // "ns/name" of the Service that could not be called; empty: the words name none.
  std::string service{};
};
std::optional<WebhookRefusal> webhook_refusal(const Error& error);

// The ValidatingAdmissionPolicy that a denial names; empty: it names none.
std::string admission_policy(const std::string& message);

// What the server says of the budget that refuses, its name and numbers; empty where it says nothing.
std::string budget_refusal(const Error& error);

// How to wait after each verdict. Budgets: kubectl's 5 s as a base; overlap and forbidden need a human.
BackoffOptions backoff_after(EvictionVerdict verdict);
// The reason under which the pod is parked: "BlockedByBudget", "AdmissionDenied", …
std::string_view park_reason(EvictionVerdict verdict);

}  // namespace haulout::drain
