// From one record to the next: what an event does to what is remembered. Pure.
#pragma once

#include <string>

#include "agent/node/record.hpp"
#include "agent/ports/backend.hpp"

namespace haulout::agent {

// Durations of the life cycle; their defaults are the documented ones.
struct LifecycleTimes {
  Duration backoff = std::chrono::minutes(5);  // after an attempt that came to nothing; doubled each time
  Duration backoff_cap = std::chrono::hours(1);
  Duration reboot_limit = std::chrono::minutes(10);  // from the request to another boot id, for each method
  Duration verify_limit = std::chrono::minutes(15);  // from the boot to a node that is well
  Duration soak{};
};

// What is known at the moment of an event.
struct Moment {
  WallTime now{};
  std::string boot_id{};
  Pending pending{};
  bool requested = false;
  std::string booted{};        // the version that runs
  std::string slot{};          // the turn that was taken
  std::string run{};           // a name for a new run
  bool others_reboot = false;  // a node that is ready: we never ask for it
  std::string cause{};         // of a degradation
  std::string cause_message{};
};

// The event must be one of the state's (see next_state): anything else is a bug and terminates.
Record advance(Record record, Event event, const Moment& moment, const LifecycleTimes& times);

// The reboot is about to be asked for: it counts from now on, also for whoever comes after a crash. To be written
// before.
void note_request(Record& record, BootMarks marks, WallTime now);
// It was not asked for after all, or refused.
void withdraw_request(Record& record);

// The back end says that no reboot is needed: whatever the last one was for has been served by it.
void note_no_need(Record& record);

}  // namespace haulout::agent
