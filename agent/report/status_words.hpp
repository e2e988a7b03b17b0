// One status, in the words of each place where it is shown: all of them are made here, from the same value. Pure.
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

// The message, or what the state means when there is none.
std::string sentence_of(const Status& status);
// For an Event, which must have a reason: the state, in CamelCase, when nothing stands in the way.
std::string reason_of(const Status& status);
// "draining, BlockedByBudget: pod shop/web-0: …".
std::string line_of(const Status& status);

// Nothing when only the message is another one: how far a drain is, is no news for an Event.
std::optional<EventNote> event_of(const Status& before, const Status& now);
// One line for each change; `before` is nothing for the first status of a process. A change of the message alone is for
// debugging.
LogEntry log_entry_of(const std::optional<Status>& before, const Status& now);

// What went wrong and holds nothing up.
EventNote warning_event_of(const Status& status);
LogEntry warning_entry_of(const Status& status);

// What happens in a drain, as far as it is worth an Event or a line.
std::optional<EventNote> event_of(const drain::Event& event);
std::optional<LogEntry> log_entry_of(const drain::Event& event);

}  // namespace haulout::agent
