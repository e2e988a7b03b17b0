// The feed of the VolumeAttachments. The drain lists them before it changes anything, and again before the first
// eviction if its plan is old. It watches them if there is one, or if a pod that must leave has a claim. If the drain
// may not read them, it does not wait for them and reports that. But once it could read them, it waits until it sees
// that they were deleted. Borrows session, pipeline, pods, book and turns.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "drain/diagnoses.hpp"
#include "drain/feed.hpp"
#include "drain/pipeline.hpp"
#include "drain/pods_feed.hpp"
#include "drain/session.hpp"
#include "drain/volume_claims.hpp"
#include "drain/volume_turns.hpp"
#include "drain/volumes.hpp"
#include "k8s/reflector.hpp"

namespace haulout::drain {

class VolumesFeed {
 public:
  VolumesFeed(Session& session, Pipeline& pipeline, PodsFeed& pods, VolumeBook& book, VolumeTurns& turns);

  // True if the drain waits until volumes are detached. With --serialize-volumes alone, it does not wait for the last
  // volumes.
  bool awaited() const;
  // Lists the volumes for the plan, and once more before the first eviction if the plan is old by then: the drain
  // expects that all attached volumes are detached in the end. If the list succeeded for the plan, it must succeed
  // again. Returns false if the drain has ended. Cancellable.
  boost::asio::awaitable<bool> list();
  // Lists the volumes once, in case the watch has lost an event, and judges them. Fails as the request fails.
  // Cancellable.
  Task<> list_again();

  // Called before evictions are chosen: takes note of the pods that were deleted and the volumes that were detached.
  void take_turns();
  // Judges the volumes, and starts the requests about them that are due.
  void look(TaskGroup& group);
  void close() { view_.reset(); }

  // True if the drain waits for no volume, as far as its view shows.
  bool clear() const;
  // True if the drain waits for a volume and follows it.
  bool waits() const { return awaited() && follower_.runs(); }
  // True while the drain waits until another node has a volume. This delays the end of the drain, at most by the
  // reattach limit, and does not change the outcome.
  bool reattaching() const { return waits() && book_.detached().any_waited_for(); }
  // A message if a volume is past its limit, and the options say that this ends the drain.
  std::optional<std::string> past_limit() const;
  const VolumeBook& book() const { return book_; }

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
  std::optional<Error> list_refused_;  // the volumes may not be listed; unset if they may
  std::optional<Error> trouble_;       // error of the last request about volumes; unset if it succeeded
  SingleTask node_asker_;
  TimePoint doubt_not_before_{};
  Backoff doubt_backoff_{{std::chrono::seconds(10), 2.0, doubt_interval, BackoffOptions::Jitter::equal}};
};

}  // namespace haulout::drain
