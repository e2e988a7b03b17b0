// Audit log of the simulated API server: one entry for each request that reached it, in order of arrival.
#pragma once

#include <optional>
#include <string>

#include "retry/clock.hpp"

namespace haulout::sim {

struct AuditEntry {
  TimePoint time;      // when the request arrived at the server
  TimePoint answered;  // when the server answered; for a watch, when it sent the head
  std::string verb, resource, subresource, ns, name;
  std::string query;  // query string as sent
  std::string uid;    // UID in the preconditions of the request body; may be empty
  std::optional<std::int64_t> grace_seconds;
  bool dry_run = false;
  std::string user;
  std::string user_agent;
  int status = 0;  // HTTP status; 0 while there is no answer
  // True if the request was a write, but not a dry run, and got a 2xx answer. Also true for a repeated eviction and for
  // a patch without effect.
  bool applied = false;

  // Returns the entry as one line for traces: "create pods/eviction shop/web-0 201".
  std::string text() const;
};

}  // namespace haulout::sim
