// What a drain under way waits for, as one reason and one sentence for the Node. Hands every event on.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "drain/observer.hpp"

namespace haulout::agent {

// Of the drain under way, as they stand now (drain::Drain::diagnoses).
using Findings = std::vector<drain::Diagnosis>;

// The drain has seen the Node schedulable since it cordoned it.
bool uncordoned_meanwhile(const Findings& findings);

class DrainStatus final : public drain::DrainObserver {
 public:
  // `changed` is called when reason or message may have changed. Borrows `next`.
  DrainStatus(drain::DrainObserver& next, std::function<void()> changed) : next_(next), changed_(std::move(changed)) {}

  void on_event(const drain::Event& event) override;
  void begin();

  // The pods that wait, the one that has waited longest first; then the volumes, once the pods have gone, those that
  // are stuck first; then the API server; then what else holds the drain up; otherwise how far it is. What a finding
  // says of them, with the way out, comes before what they say themselves. At the end stands one finding more, where
  // there is one about the same pod or volume or about the node, and how many there are.
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
  std::map<std::string, Waiting> waiting_;          // by UID
  std::map<std::string, std::string> attached_;     // by VolumeAttachment: what is said of a volume that is waited for
  std::map<std::string, std::string> reattaching_;  // likewise, until another node has it
  std::string trouble_;                             // why the drain waits for the API server
  std::size_t seen_ = 0;
  drain::Progress progress_;
};

}  // namespace haulout::agent
