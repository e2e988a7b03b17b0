// The proof that a drain is over. When the views show that the node is empty and the settle time has passed, the API
// server is asked whether that is true, in case a view has stopped without an error: most-recent lists of the pods and
// the volumes, and a read of the Node. Only then the drain ends as `drained`. Also ends it as `blocked` if a volume is
// past its limit. Borrows session, pipeline, cordon and feeds.
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

  // Starts the proof beside the loop if the drain seems to be over: a list that stalls must delay neither a late pod
  // nor the deadline.
  void look(TaskGroup& group);
  // A proof that the server does not answer, or refuses.
  std::vector<DiagnosisFact> facts() const;
  // Why the node does not count as drained, although no pod that must leave is left. Starts with ": "; may be empty.
  std::string why_not_over() const;
  TimePoint next_wake(TimePoint at) const;

 private:
  // The pending check whether the node is empty, from its first request until the server has answered.
  struct Pending {
    Pending(Session& session, TimePoint now)
        : since(now), trouble(session, "that node " + session.node_name() + " is empty could not be proved") {}
    // When it becomes a diagnosis.
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
  std::optional<TimePoint> settling_told_;  // the cordon for which `settling` was emitted, by its time
  TimePoint not_before_{};                  // of the next proof
  Backoff backoff_{BackoffOptions{}};
};

}  // namespace haulout::drain
