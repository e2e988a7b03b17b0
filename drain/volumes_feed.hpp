// The feed of the VolumeAttachments. Lists them before the drain changes anything, and again before the first eviction
// if the plan is old by then. Watches them if the node has a VolumeAttachment, or if a pod that must leave has a claim.
// If the server forbids the first list or the first reads of PersistentVolumes, the drain ends if volumes are required;
// otherwise it does not wait for volumes, and a diagnosis says so. If it could read both once and the view fails later,
// the drain waits until it can see that the volumes were detached. Borrows session, pipeline, pods, book and turns.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "drain/diagnoses.hpp"
#include "drain/feed.hpp"
#include "drain/node_feed.hpp"
#include "drain/pipeline.hpp"
#include "drain/session.hpp"
#include "drain/volume_claims.hpp"
#include "drain/volume_turns.hpp"
#include "drain/volumes.hpp"
#include "k8s/reflector.hpp"

namespace haulout::drain {

class VolumesFeed {
 public:
  VolumesFeed(Session& session, Pipeline& pipeline, PodsFeed& pods, VolumeBook& book, VolumeTurns& turns);

  // Returns true if the drain waits at its end until its volumes are detached. False if Options::volumes is `off` (even
  // with --serialize-volumes), in a dry run, and if the drain may not read volumes.
  bool awaited() const;
  // Lists the volumes for the plan, or once more before the first eviction if the plan is old by then, and looks up
  // their claims. If the server forbids the list for the plan, and volumes are not required, the drain continues
  // without volumes. Any other failure ends the drain. Returns false if the drain has ended. Cancellable.
  boost::asio::awaitable<bool> list();
  // Lists the volumes once, in case the watch has lost an event, and decides their outcomes. Fails with the error of
  // the request. Cancellable.
  Task<> list_again();

  // Updates the guard VolumeTurns by the deleted pods and detached volumes. Called before evictions are chosen.
  void take_turns();
  // Decides the outcomes of the volumes, and starts the requests about them that are due.
  void look(TaskGroup& group);
  void close() { view_.reset(); }

  // Returns true if the drain waits for no volume, as far as its view shows.
  bool clear() const;
  // Returns true if the drain waits until volumes are detached, and watches them.
  bool waits() const { return awaited() && follower_.runs(); }
  // Returns true while the drain waits until another node has attached a volume. This delays the end of the drain, at
  // most by the reattach limit, and does not change the outcome.
  bool reattaching() const { return waits() && book_.detached().any_waited_for(); }
  // Returns a message if a volume is past its limit and Options::end_at_volume_limit is set.
  std::optional<std::string> past_limit() const;
  const VolumeBook& book() const { return book_; }

  // Returns the end of a message: the error because of which the drain cannot see whether the volumes are detached. An
  // empty text if there is no error.
  std::string why_unknown() const;
  void diagnose(std::vector<DiagnosisFact>& facts) const;
  TimePoint next_wake(TimePoint at) const;

 private:
  bool wanted() const;
  const std::optional<Error>& refused() const;
  bool concerns(const k8s::VolumeAttachment& attachment) const;
  boost::asio::awaitable<void> follow();
  boost::asio::awaitable<void> doubt();
  TimePoint doubt_at() const;
  boost::asio::awaitable<void> ask_node();

  Session& session_;
  Pipeline& pipeline_;
  PodsFeed& pods_;
  VolumeBook& book_;
  VolumeTurns& turns_;
  VolumeClaims claims_;
  std::optional<k8s::List<k8s::VolumeAttachment>> listed_;
  std::unique_ptr<k8s::Reflector<k8s::VolumeAttachment>> view_;
  SingleTask follower_;
  std::optional<Error> list_refused_;  // why the volumes may not be listed; unset if they may
  std::optional<Error> trouble_;       // error of the last request about volumes; unset if it succeeded
  SingleTask node_asker_;
  TimePoint doubt_not_before_{};
  Backoff doubt_backoff_{{std::chrono::seconds(10), 2.0, doubt_interval, BackoffOptions::Jitter::equal}};
};

}  // namespace haulout::drain
