// What the API server was asked and what it answered: one entry per request, in order of arrival.
#pragma once

#include <optional>
#include <string>

#include "retry/clock.hpp"

namespace haulout::sim {

struct AuditEntry {
  TimePoint time;      // of arrival at the server
  TimePoint answered;  // of leaving it; for a watch, of its head
  std::string verb, resource, subresource, ns, name;
  std::string query;  // as sent
  std::string uid;    // of the body's preconditions
  std::optional<std::int64_t> grace_seconds;
  bool dry_run = false;
  std::string user;
  std::string user_agent;
  int status = 0;  // 0: not answered (yet)
  // The write took effect: the revision moved, or it would have for a repeated eviction.
  bool applied = false;

  // "create pods/eviction shop/web-0 201": for traces.
  std::string text() const;
};

}  // namespace haulout::sim
