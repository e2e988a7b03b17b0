// What a drain under way waits for, as one reason and one sentence for the Node. Hands every event on.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "drain/observer.hpp"

namespace haulout::agent {

class DrainStatus final : public drain::DrainObserver {
 public:
  // `changed` is called when reason or message may have changed. Borrows `next`.
  DrainStatus(drain::DrainObserver& next, std::function<void()> changed) : next_(next), changed_(std::move(changed)) {}

  void on_event(const drain::Event& event) override;
  void begin();

  // The pods that wait, the one that has waited longest first; then the volumes, once the pods have gone; then the
  // API server; otherwise how far it is. What a diagnosis says of them comes before what they say themselves.
  std::string reason() const;
  std::string message() const;
  // The drain has seen the Node schedulable since it cordoned it.
  bool uncordoned_meanwhile() const;

 private:
  struct Waiting {
    std::size_t order = 0;
    std::string pod{}, reason{}, message{};
  };
  const Waiting* first() const;
  std::string cause_of(const Waiting& waiting) const;
  bool waits_for_volumes() const {
    return progress_.vanished == progress_.to_evict && !(attached_.empty() && reattaching_.empty());
  }

  drain::DrainObserver& next_;
  std::function<void()> changed_;
  std::map<std::string, Waiting> waiting_;          // by UID
  std::map<std::string, std::string> attached_;     // by VolumeAttachment: what is said of a volume that is waited for
  std::map<std::string, std::string> reattaching_;  // likewise, until another node has it
  std::map<std::pair<std::string, std::string>, std::string> diagnoses_;  // by subject and code
  std::string trouble_;                                                   // why the drain waits for the API server
  std::size_t seen_ = 0;
  drain::Progress progress_;
};

}  // namespace haulout::agent
