// Computes the next record from the current record and an event. Pure.
#pragma once

#include <set>
#include <string>

#include "agent/node/record.hpp"
#include "agent/ports/backend.hpp"
#include "agent/ports/updater.hpp"

namespace haulout::agent {

// Number of failed installations in a row after which a node is degraded.
inline constexpr unsigned default_update_attempts = 3;

// Durations of the life cycle. The defaults are those in the documentation of the options.
struct LifecycleTimes {
  // Delay after the first failed attempt; doubled after each further failure.
  Duration backoff = std::chrono::minutes(5);
  Duration backoff_cap = std::chrono::hours(1);
  Duration update_limit = std::chrono::hours(1);     // for the installation of updates
  Duration reboot_limit = std::chrono::minutes(10);  // from the request to a new boot id, for each method
  Duration verify_limit = std::chrono::minutes(15);  // from the boot or the installation until the node is healthy
  Duration soak{};
};

// The facts that advance() needs about the moment of an event.
struct Moment {
  WallTime now{};
  std::string boot_id{};
  Pending pending{};
  Updates updates{};
  bool requested = false;
  std::string booted{};        // the running version
  std::string slot{};          // the slot that was taken
  std::string slot_version{};  // the version for which it was taken
  std::string run{};           // id for a new run
  bool surges = false;         // the drain of the new run surges pods
  bool asks = false;           // the drain of the new run creates EvictionRequests
  bool installs = false;       // the agent installs updates (--update) whose versions mean the same on other nodes
  bool others_reboot = false;  // another program reboots a node that is ready; the agent requests no reboot
  std::set<std::string> readiness_taints{};  // of the Node now (see agent/node/readiness.hpp)
  std::string cause{};                       // reason of a degradation or of a failed attempt
  std::string cause_message{};
};

// Returns the record after `event`. The event must be possible in the state (see next_state()); otherwise there is a
// bug, and the function terminates the program.
Record advance(Record record, Event event, const Moment& moment, const LifecycleTimes& times);

// Records that the agent is about to request the reboot. From then on the reboot counts as requested, also for the next
// process after a crash. Therefore the caller writes the record before it sends the request.
void note_request(Record& record, BootMarks marks, WallTime now);
// Undoes note_request(), because the agent did not send the request, or because the machine refused it.
void withdraw_request(Record& record);

// Records that the back end reports no need for a reboot: the need that led to the last reboot is satisfied.
void note_no_need(Record& record);

// Records the updates that wait, for people to read. Keeps what is recorded if it is unknown whether updates wait.
void note_updates(Record& record, const Updates& updates);

}  // namespace haulout::agent
