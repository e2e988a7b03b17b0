// Texts of a status for each place that shows it: log, Events and service manager. All texts come from the same value.
// Pure.
#pragma once

#include <optional>
#include <string>

#include "agent/node/node_status.hpp"
#include "agent/process/logging.hpp"
#include "agent/report/event_queue.hpp"
#include "drain/observer.hpp"

namespace haulout::agent {

struct LogEntry {
  Severity severity = Severity::info;
  std::string message{};
  Log::Fields fields{};
};

// Returns the message of the status, or the meaning of its state if it has no message.
std::string sentence_of(const Status& status);
// Returns the reason for an Event, which must have one: the status's reason, or its state in CamelCase if it has no
// reason.
std::string reason_of(const Status& status);
// Returns one line like "draining, BlockedByBudget: pod shop/web-0: …".
std::string line_of(const Status& status);

// Returns the Event for a change of the status. Returns nothing if state and reason are unchanged: a new message only
// reports the progress of a drain.
std::optional<EventNote> event_of(const Status& before, const Status& now);
// Returns the log line for a change of the status. `before` is empty for the first status of a process. If only the
// message has changed, the severity is debug.
LogEntry log_entry_of(const std::optional<Status>& before, const Status& now);

// The Event and the log line for a problem that does not delay the update.
EventNote warning_event_of(const Status& status);
LogEntry warning_entry_of(const Status& status);

// The Event and the log line for an event of a drain; nothing if it needs none.
std::optional<EventNote> event_of(const drain::Event& event);
std::optional<LogEntry> log_entry_of(const drain::Event& event);

}  // namespace haulout::agent
