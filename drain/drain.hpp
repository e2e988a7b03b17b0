// Drains one node. Its coroutines do the I/O; pure functions decide (pod_filter, order, pipeline, eviction_verdict,
// diagnoses).
//
// run() executes the stages preflight(), cordon() and evict() one after the other. For several nodes the caller first
// calls preflight() and cordon() for all of them, then evict() for one after the other. Each of these three calls
// restarts the clock of the report and of the timeout, so that time spent on other nodes does not count; run() starts
// them only once. preflight() and cordon() return false if they have ended the drain. evict() always ends it, and
// returns true if its outcome is `drained`. No stage returns an error: a failure is an outcome in report().
// Cancellable: report() then describes what was done so far, with outcome `cancelled`. Borrows client, rng, observer
// and the client's clock, which must outlive the Drain. Single-threaded.
#pragma once

#include <memory>
#include <string>

#include "drain/observer.hpp"
#include "drain/options.hpp"
#include "drain/report.hpp"
#include "k8s/client.hpp"
#include "retry/rng.hpp"

namespace haulout::drain {

struct Asked;   // drain/eviction_request_book.hpp
struct Surged;  // drain/surge_book.hpp

class Drain {
 public:
  Drain(k8s::Client& client, Rng& rng, DrainObserver& observer, Options options, std::string node);
  ~Drain();

  // leaked() returns the UIDs of VolumeAttachments that no pod was found to use. A later process that continues this
  // run passes them to expect_leaked() before preflight(), so that it does not wait for these volumes either.
  void expect_leaked(std::set<std::string> uids);
  const std::set<std::string>& leaked() const;

  // evicted_daemon_sets() returns the UIDs of the DaemonSets of which this drain or an earlier process has requested
  // evictions, and of the evicted pods. The other pods of the DaemonSets are in place of the evicted ones, and stay.
  // A later process that continues this run passes them to expect_evicted() before preflight(). If one of the pods is
  // still there, its request was lost, and it is evicted.
  void expect_evicted(std::set<std::string> uids);
  std::set<std::string> evicted_daemon_sets() const;

  boost::asio::awaitable<bool> preflight();
  boost::asio::awaitable<bool> cordon();
  boost::asio::awaitable<bool> evict();
  boost::asio::awaitable<Report> run();

  // Return whether pods may be surged (drain/surge_book.hpp), and what give_back_surged() has to know about them, which
  // the caller has to call after a cancellation. A drain that has ended did that itself, and the first function returns
  // whether that has failed.
  bool may_have_surged() const;
  Surged surged() const;
  // may_have_requested() returns whether EvictionRequests may be open (drain/eviction_request_book.hpp), which the
  // caller has to withdraw with withdraw_requests() after a cancellation, and asked() returns what that function has to
  // know about them. A drain that has ended did that itself, and the first function returns whether that has failed. A
  // later process that continues this run calls expect_requests() before preflight() if some may be open. The drain
  // then withdraws them, too, also if the option is off by now.
  bool may_have_requested() const;
  Asked asked() const;
  void expect_requests();

  // Returns the Node as the drain has seen it last. Without a name until preflight() has read it.
  const k8s::Node& node() const;

  // Returns the diagnoses that hold now.
  std::vector<Diagnosis> diagnoses() const;

  // Returns a report of the drain so far. It is final after a stage has returned false, after evict() has ended, and
  // after a cancellation.
  Report report() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace haulout::drain
