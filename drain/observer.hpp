// The port through which a drain tells what happens while it happens. Called on the engine's thread, between two
// awaits; the references live for the call only. An observer must not throw and must not block.
#pragma once

#include <string>

#include "drain/report.hpp"

namespace haulout::drain {

enum class EventType {
  planned,      // the plan stands; one event, progress tells the sizes
  fit_checked,  // before anything is touched: message says which pods would find no room elsewhere, or may find none
  cordoned,     // acknowledged by the server
  eviction_sent,
  signal_sent,  // likewise, although its budget is closed: a webhook may take it as its sign. It stays parked
  evicted,      // the server accepted the eviction
  parked,       // cannot proceed now; pod->reason says why. Sent again only when reason or message change
  resumed,      // is tried again after it was parked
  vanished,
  terminating,     // is on its way out without an eviction of ours: somebody else deleted it, or it was when the drain
                   // began
  left,            // is not waited for any more, and stays: pod->reason says why
  volume_waiting,  // its last pod has gone, it is still attached. Sent again when the message changes, and
                   // when it is no longer waited for: its outcome says so
  volume_detached,
  volume_reattach,  // it is waited for until another node has it; sent again when the message changes, and when that is
                    // over: volume->reattach says how. `late` is a warning
  late_pod,         // appeared after the plan was made
  diagnosis_raised,
  diagnosis_withdrawn,
  throttled,     // no eviction is sent for now: the server says so, or cannot be reached; message says which
  disconnected,  // the view is not live, or what the drain cannot go on without fails: message says which and why
  reconnected,   // that is over, or no longer waited for
  settling,      // empty; waiting for the settle time
  uncordoned,    // a cordon was taken back
  finished,
};

struct Progress {
  std::size_t to_evict = 0;  // pods that must leave, vanished ones included
  std::size_t vanished = 0;
  std::size_t terminating = 0;
  std::size_t waiting = 0;  // parked
  std::size_t skipped = 0;
  std::size_t detaching = 0;  // volumes that are waited for
  std::size_t unclear = 0;    // likewise, though it is not known yet whether any pod has used them
};

struct Event {
  EventType type;
  WallTime at;
  const std::string& node;
  // eviction_sent, signal_sent, evicted, parked, resumed, vanished, terminating, left, late_pod
  const PodReport* pod = nullptr;
  const Diagnosis* diagnosis = nullptr;  // diagnosis_*
  std::string message;
  Progress progress;
  const VolumeReport* volume = nullptr;  // volume_*
};

std::string_view to_string(EventType type);  // "planned", "eviction-sent", …

class DrainObserver {
 public:
  virtual ~DrainObserver() = default;
  virtual void on_event(const Event& event) = 0;
};

}  // namespace haulout::drain
