// Evicts the pods, from the first eviction to the outcome of the drain: a loop that wakes on events and decides by the
// current state. The feeds, the check of the end (EndProof) and the look-ups for the diagnoses run concurrently with
// it. Borrows session, pipeline, cordon, feeds and findings.
#pragma once

#include <string>

#include "drain/cordon_keeper.hpp"
#include "drain/end_proof.hpp"
#include "drain/feeds.hpp"
#include "drain/findings.hpp"
#include "drain/pipeline.hpp"
#include "drain/session.hpp"

namespace haulout::drain {

class Eviction {
 public:
  Eviction(Session& session, Pipeline& pipeline, const CordonKeeper& cordon, Feeds feeds, Findings& findings)
      : session_(session),
        pipeline_(pipeline),
        feeds_(feeds),
        findings_(findings),
        proof_(session, pipeline, cordon, feeds) {}

  // Returns when the drain has ended, with the outcome in session.ending(). Cancels eviction requests that are still in
  // flight. Cancellable.
  boost::asio::awaitable<void> run();

 private:
  boost::asio::awaitable<void> loop(TaskGroup& group);
  boost::asio::awaitable<void> evict(std::string uid, std::string ns, std::string name);
  // Runs the checks that look at every pod. May end the drain.
  void look_around(TaskGroup& group);
  void hurry_views();
  // Ends the drain if the Node was deleted, the server rejects all remaining evictions, or the deadline has passed.
  void conclude();
  TimePoint overdue_at() const;
  TimePoint next_wake() const;

  Session& session_;
  Pipeline& pipeline_;
  Feeds feeds_;
  Findings& findings_;
  EndProof proof_;
  Duration patience_{};  // the value of Pipeline::patience() when hurry_views() was called last
};

// `--dry-run`: reports what the drain would do, and changes nothing. With `server` it sends each eviction with
// dryRun=All, so that the server evaluates admission and budgets. A dry-run eviction uses up no disruption of a budget,
// so the number of pods that a budget allows to be evicted at once is computed from its status.
//
// Ends the drain: as `drained` if all pods could be evicted, else as `blocked`. Returns true if all could. Borrows
// session and pipeline. Cancellable.
boost::asio::awaitable<bool> dry_run(Session& session, Pipeline& pipeline, const Feeds& feeds);

}  // namespace haulout::drain
