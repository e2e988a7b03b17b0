// Summarizes what a running drain waits for, as one reason and one message for the Node. Passes every event on to the
// next observer. No I/O.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "drain/observer.hpp"

namespace haulout::agent {

// The current diagnoses of the running drain (drain::Drain::diagnoses).
using Findings = std::vector<drain::Diagnosis>;

// Returns true if the drain has seen the Node schedulable after it cordoned it.
bool uncordoned_meanwhile(const Findings& findings);

class DrainStatus final : public drain::DrainObserver {
 public:
  // Calls `changed` when the reason or the message may have changed. Borrows `next`.
  DrainStatus(drain::DrainObserver& next, std::function<void()> changed) : next_(next), changed_(std::move(changed)) {}

  void on_event(const drain::Event& event) override;
  void begin();

  // Return the reason and the message for what the drain waits for:
  //   - While a pod is parked: they name the pod that has been parked longest.
  //   - When all pods are deleted and volumes are not yet detached or attached elsewhere: they name a volume, a stuck
  //     one first.
  //   - Otherwise: if the drain waits for the API server, the message says why; or else it is a diagnosis that delays
  //     the drain; or else it is the progress. The reason is DetachingVolumes if all pods are deleted and volumes are
  //     still attached of which it is unknown whether a pod used them; ApiUnavailable if the drain cannot prove that
  //     the node is empty; otherwise Evicting.
  //
  // If a diagnosis explains why the pod or the volume waits, the message is the text of the diagnosis, which names the
  // remedy, not the text of the event. If other diagnoses concern the waiting pod or the node, the message ends with
  // one of them and the number of the others. If no pod or volume waits, it ends so with any other diagnosis.
  std::string reason(const Findings& findings) const;
  std::string message(const Findings& findings) const;

 private:
  struct Waiting {
    std::size_t order = 0;
    std::string uid{}, pod{}, reason{}, message{};
  };
  const Waiting* first() const;
  std::string of_pods(const Waiting& waiting, const Findings& findings) const;
  std::string of_volumes(const Findings& findings) const;
  const drain::Diagnosis* stuck_volume(const Findings& findings) const;
  const drain::Diagnosis* of_attached(const Findings& findings) const;
  bool pods_have_gone() const { return progress_.vanished == progress_.to_evict; }
  bool waits_for_volumes() const { return pods_have_gone() && !(attached_.empty() && reattaching_.empty()); }
  bool waits_for_unclear() const { return pods_have_gone() && progress_.unclear > 0; }

  drain::DrainObserver& next_;
  std::function<void()> changed_;
  std::map<std::string, Waiting> waiting_;       // by UID
  std::map<std::string, std::string> attached_;  // by VolumeAttachment: message about a volume that is still attached
  // By VolumeAttachment: message about a volume that is detached from this node but not yet attached to another one.
  std::map<std::string, std::string> reattaching_;
  std::string trouble_;  // why the drain waits for the API server
  std::size_t seen_ = 0;
  drain::Progress progress_;
};

}  // namespace haulout::agent
