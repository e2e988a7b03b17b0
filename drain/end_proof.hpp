// Checks that a drain is over, and ends it. When the views show that no pod that must leave is left and the settle time
// has passed, it asks the API server, because a view may have stopped without an error: it lists the pods and the
// volumes (most-recent lists), and reads the Node. If these confirm it, the drain ends as `drained`. Also ends the
// drain as `blocked` if a volume is past its limit. A request that fails is repeated later, and becomes a diagnosis.
// The check runs as a child of the task group of look(), which cancels it. Borrows session, pipeline, cordon and feeds.
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
  // Returns the diagnosis of a check whose requests fail or are not answered, if there is one.
  std::vector<DiagnosisFact> facts() const;
  // Returns why the node does not count as drained, although no pod that must leave is left. Starts with ": "; may be
  // empty.
  std::string why_not_over() const;
  TimePoint next_wake(TimePoint at) const;

 private:
  // The pending check whether the node is empty, from its first request until the server has answered.
  struct Pending {
    Pending(Session& session, TimePoint now)
        : since(now), trouble(session, "that node " + session.node_name() + " is empty could not be proved") {}
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
  std::optional<TimePoint> settling_told_;  // when the cordon began for which the event `settling` was emitted
  TimePoint not_before_{};                  // the next check must not begin before this time
  Backoff backoff_{BackoffOptions{}};
};

}  // namespace haulout::drain
