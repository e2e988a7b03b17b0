// The drain of one node, as a coroutine over pure decisions (pod_filter, order, pipeline, eviction_verdict, diagnoses).
//
// run() is preflight(), cordon() and evict() in turn; several nodes are preflighted and cordoned first, then evicted
// one after the other. The time of the report, and that which the timeout limits, begins with the latest of these three
// stages, and with the first one of a run(): what other nodes take in between is not this one's. Each stage returns
// false when the drain has ended there; report() then says how. None of them fails: failures are outcomes. Cancelling
// unwinds; report() is then what was done so far, with outcome `cancelled`. Borrows client, clock, rng and observer,
// which must outlive it. One thread.
#pragma once

#include <memory>
#include <string>

#include "drain/observer.hpp"
#include "drain/options.hpp"
#include "drain/report.hpp"
#include "k8s/client.hpp"
#include "retry/rng.hpp"

namespace haulout::drain {

class Drain {
 public:
  Drain(k8s::Client& client, Rng& rng, DrainObserver& observer, Options options, std::string node);
  ~Drain();

  // VolumeAttachments (UIDs) that nobody was found to use, for whoever goes on with this run: handed over before
  // preflight(), they are not waited for there either.
  void expect_leaked(std::set<std::string> uids);
  const std::set<std::string>& leaked() const;

  boost::asio::awaitable<bool> preflight();
  boost::asio::awaitable<bool> cordon();
  boost::asio::awaitable<bool> evict();
  boost::asio::awaitable<Report> run();

  // What holds it up now, and what is worth to be known.
  std::vector<Diagnosis> diagnoses() const;

  // Current state; complete after any stage returned false, after evict(), and after a cancellation.
  Report report() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace haulout::drain
