// Carries out what the SurgeBook decides: reads the annotations of namespaces and the access modes of claims, takes the
// label pod-template-hash off pods, and gives it back. Sends nothing if surge is off. Borrows session, pipeline,
// controllers and book. Also the function that gives back what a drain has left behind.
#pragma once

#include <string>
#include <vector>

#include "drain/controller_book.hpp"
#include "drain/diagnoses.hpp"
#include "drain/feed.hpp"
#include "drain/pipeline.hpp"
#include "drain/session.hpp"
#include "drain/surge_book.hpp"

namespace haulout::drain {

class SurgeFeed {
 public:
  SurgeFeed(Session& session, Pipeline& pipeline, ControllerBook& controllers, SurgeBook& book)
      : session_(session), pipeline_(pipeline), controllers_(controllers), book_(book) {}

  // Reads what has to be known about the pods that must leave, so that the drain can say before its first eviction
  // which of them it cannot replace. Sends each request once; the main loop repeats those that failed. Cancellable.
  boost::asio::awaitable<void> read_at_first();
  // Starts the requests that are due.
  void look(TaskGroup& group);
  void diagnose(std::vector<DiagnosisFact>& facts) const { book_.diagnose(pipeline_.leaving(), facts); }
  TimePoint next_wake(TimePoint at) const;
  // Gives back the pods of this node that are surged, of whatever run, and that do not terminate. Called when the drain
  // has ended, and before a drain without surge. Adds to the message of a drain that has ended what could not be given
  // back. Cancellable.
  boost::asio::awaitable<void> give_back();

 private:
  boost::asio::awaitable<void> read_all();
  boost::asio::awaitable<void> read(SurgeBook::Question question);
  boost::asio::awaitable<void> take(SurgeBook::Step step);

  Session& session_;
  Pipeline& pipeline_;
  ControllerBook& controllers_;
  SurgeBook& book_;
  SingleTask reader_;
};

struct GivenBack {
  std::vector<std::string> pods;  // "namespace/name" of the pods that were given back
  // The first error, and the pods that are still surged because of such errors. No error: none is left.
  std::optional<Error> error;
  std::vector<std::string> left;
};

// Lists the pods of the node and gives back those that a drain has surged, except those that terminate: sets the label
// pod-template-hash again and removes the mark, so that the ReplicaSet adopts the pod. Repeats what may succeed later,
// until `deadline`. Fails if the pods cannot be listed. Cancellable. Borrows client and rng.
Task<GivenBack> give_back_surged(k8s::Client& client, Rng& rng, std::string node, TimePoint deadline);

}  // namespace haulout::drain
