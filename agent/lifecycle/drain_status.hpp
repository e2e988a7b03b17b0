// Summarizes what a running drain waits for, as one reason and one sentence for the Node. Passes every event on to the
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

// Returns true if the drain has seen the Node schedulable since it cordoned it.
bool uncordoned_meanwhile(const Findings& findings);

class DrainStatus final : public drain::DrainObserver {
 public:
  // Calls `changed` when the reason or the message may have changed. Borrows `next`.
  DrainStatus(drain::DrainObserver& next, std::function<void()> changed) : next_(next), changed_(std::move(changed)) {}

  void on_event(const drain::Event& event) override;
  void begin();

  // What the drain waits for. If a pod waits: the pod that has waited longest. If all pods are deleted: the volumes, a
  // stuck one first. Otherwise: the API server (only in the message), any other diagnosis that holds the drain up, or
  // the progress.
  //
  // If a diagnosis explains why the pod or the volume waits, the message uses its text, which names the remedy, instead
  // of the text of the event. If other diagnoses concern the waiting pod or the node, the message ends with one of them
  // and with the number of the others. Without a waiting pod or volume, it does so with all other diagnoses.
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
  // By VolumeAttachment: message about a volume that is detached, and that another node does not have yet.
  std::map<std::string, std::string> reattaching_;
  std::string trouble_;  // why the drain waits for the API server
  std::size_t seen_ = 0;
  drain::Progress progress_;
};

}  // namespace haulout::agent
