// The interface through which a drain reports events while it runs. The drain calls it on its own thread, between two
// awaits. The references in an Event are valid during the call only. An observer must not throw and must not block.
#pragma once

#include <string>

#include "drain/report.hpp"

namespace haulout::drain {

enum class EventType {
  planned,  // the plan is complete; sent once, `progress` has the numbers
  // Result of the check whether the pods fit on other nodes, sent before anything is changed, but not if all pods fit.
  // `message` names the pods that do not fit and those of which it is unknown, or says why the check failed.
  fit_checked,
  cordoned,  // the server has acknowledged the cordon; a client dry run sends no request, and message says so
  eviction_sent,
  // The drain sends an eviction although the pod's budget is exhausted, because a webhook may react to it. The pod
  // remains parked.
  signal_sent,
  evicted,  // the server accepted the eviction
  // The eviction of the pod cannot succeed now; pod->reason says why. Sent again only when reason or message change.
  // Also sent when a terminating pod still exists 60 s after its grace period.
  parked,
  resumed,   // the drain tries the pod again after it was parked
  vanished,  // the pod was deleted
  // The pod is terminating without an eviction of this drain: another client deleted it, or it was terminating when the
  // drain began.
  terminating,
  left,  // the drain does not wait for the pod any more, and the pod stays on the node: pod->reason says why
  // No pod uses the volume any more, and the drain waits until it is detached. Sent again when the message changes, and
  // when the drain stops waiting although the volume is not detached: volume->outcome then says why.
  volume_waiting,
  volume_detached,
  // The drain waits until another node has attached the volume. Sent again when the message changes, and when the wait
  // ends: volume->reattach says how. If it is `late`, the limit has passed, and users should see a warning. Not sent
  // when the wait ends because no controller replaces the pod that used the volume.
  volume_reattach,
  late_pod,  // a pod appeared after the plan was made
  diagnosis_raised,
  diagnosis_withdrawn,
  throttled,     // no eviction is sent for now: the server requested a pause or is unreachable; message says which
  disconnected,  // the view is not live, or a request fails that the drain needs: message says which and why
  reconnected,   // the problem of `disconnected` is over, or the drain does not wait for it any more
  settling,      // no pod that must leave is left; the drain waits for the settle time
  uncordoned,    // the drain removed its own cordon
  finished,
};

struct Progress {
  std::size_t to_evict = 0;  // pods that must leave, including those already deleted
  std::size_t vanished = 0;
  std::size_t terminating = 0;
  std::size_t waiting = 0;  // parked
  std::size_t skipped = 0;
  std::size_t detaching = 0;  // volumes that the drain waits for
  std::size_t unclear = 0;    // volumes whose users are not known yet
};

struct Event {
  EventType type;
  WallTime at;
  const std::string& node;
  // The pod. Set for eviction_sent, signal_sent, evicted, parked, resumed, vanished, terminating, left, late_pod and
  // throttled.
  const PodReport* pod = nullptr;
  const Diagnosis* diagnosis = nullptr;  // set for diagnosis_*
  std::string message;
  Progress progress;
  const VolumeReport* volume = nullptr;  // set for volume_*
};

std::string_view to_string(EventType type);  // "planned", "eviction-sent", …

class DrainObserver {
 public:
  virtual ~DrainObserver() = default;
  virtual void on_event(const Event& event) = 0;
};

}  // namespace haulout::drain
