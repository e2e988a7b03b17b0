// Checks that a drain is over, and ends it. When the views show no pod and no volume to wait for, and the settle time
// has passed, EndProof asks the API server, because a view may have stopped without an error: it lists the pods and, if
// the drain waits for volumes, the VolumeAttachments (most-recent lists), and reads the Node. If the answers confirm
// the views, the drain ends as `drained`. EndProof also ends the drain as `blocked` if a volume is past its limit and
// Options::end_at_volume_limit is set. A request that fails is repeated later. If it is for the pods or the Node, its
// failure becomes a diagnosis. The check runs as a child of the task group of look(), which cancels it. Borrows
// session, pipeline, cordon and feeds.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drain/cordon_keeper.hpp"
#include "drain/diagnoses.hpp"
#include "drain/feed.hpp"
#include "drain/feeds.hpp"
#include "drain/pipeline.hpp"
#include "drain/session.hpp"

namespace haulout::drain {

class EndProof {
 public:
  EndProof(Session& session, Pipeline& pipeline, const CordonKeeper& cordon, Feeds feeds)
      : session_(session), pipeline_(pipeline), cordon_(cordon), feeds_(feeds) {}

  // If the drain seems to be over, starts the check concurrently with the main loop, so that a list that stalls delays
  // neither the eviction of a late pod nor the deadline.
  void look(TaskGroup& group);
  // Returns a diagnosis if the check has not been answered for `worth_a_word`, because its requests fail or are not
  // answered. Otherwise empty.
  std::vector<DiagnosisFact> facts() const;
  // Returns why the node does not count as drained, although no pod that must leave is left. Starts with ": "; may be
  // empty.
  std::string why_not_over() const;
  TimePoint next_wake(TimePoint at) const;

 private:
  // The pending check whether the node is empty. It lasts, with all repetitions of its requests, until the server has
  // answered, or until the node has pods that must leave again or was uncordoned.
  struct Pending {
    Pending(Session& session, TimePoint now)
        : since(now), trouble(session, "it is not confirmed that node " + session.node_name() + " is drained") {}
    // Returns the time from which facts() reports the check.
    TimePoint told_at() const { return saturating_add(since, worth_a_word); }
    TimePoint since;
    std::string why{};  // why its last request failed; empty: none has failed
    Trouble trouble;
  };

  bool seems_over();
  bool volume_is_past_limit() const;
  boost::asio::awaitable<void> prove();
  boost::asio::awaitable<bool> ended_by_volume();
  boost::asio::awaitable<void> prove_emptiness();
  boost::asio::awaitable<bool> volumes_confirmed();
  boost::asio::awaitable<bool> node_confirmed();
  void failed(const Error& error, std::string_view what, std::string_view right);
  void answered();
  void postpone(const std::optional<std::chrono::milliseconds>& retry_after);

  Session& session_;
  Pipeline& pipeline_;
  const CordonKeeper& cordon_;
  Feeds feeds_;
  SingleTask proof_;
  std::optional<Pending> pending_;
  std::optional<TimePoint> settling_told_;  // start of the cordon for which the event `settling` was emitted last
  TimePoint not_before_{};                  // the next check must not begin before this time
  Backoff backoff_{BackoffOptions{}};
};

}  // namespace haulout::drain
