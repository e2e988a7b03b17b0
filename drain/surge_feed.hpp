// Carries out what the SurgeBook decides: reads the annotations of namespaces and the access modes of claims, takes the
// label pod-template-hash off pods, and gives pods back. Sends nothing if surge is off and no pod has a mark. Borrows
// session, pipeline, node and book. Also the function that gives back what a drain has left behind.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drain/diagnoses.hpp"
#include "drain/feed.hpp"
#include "drain/left_over.hpp"
#include "drain/node_feed.hpp"
#include "drain/pipeline.hpp"
#include "drain/session.hpp"
#include "drain/surge_book.hpp"

namespace haulout::drain {

class SurgeFeed {
 public:
  // How many patches may be in flight at the same time.
  static constexpr std::size_t most_requests = 10;
  // Pause of all steps after an answer 429 that names none.
  static constexpr Duration throttle_pause = std::chrono::seconds(1);

  SurgeFeed(Session& session, Pipeline& pipeline, NodeFeed& node, SurgeBook& book)
      : session_(session), pipeline_(pipeline), node_(node), book_(book) {}

  // Reads what has to be known about the pods that must leave, so that the drain can say before its first eviction
  // which of them it cannot replace. Sends each request once; the main loop repeats those that failed. Cancellable.
  boost::asio::awaitable<void> read_at_first();
  // Starts the requests that are due. Surges no pod while the node is known to be schedulable, or may be.
  void look(TaskGroup& group);
  void diagnose(std::vector<DiagnosisFact>& facts) const { book_.diagnose(pipeline_.leaving(), facts); }
  // Returns what a dry run tells: how many pods would be surged, and why others cannot be. Empty if surge is off.
  std::string plan() const;
  TimePoint next_wake(TimePoint at) const;
  // Gives back the pods that are still surged when the drain has ended. Adds to the message of the drain what could not
  // be given back. Cancellable.
  boost::asio::awaitable<void> give_back();
  // Returns true if pods may be surged: before give_back() if one was surged, after it if one could not be given back.
  bool may_be_left() const { return left_.value_or(book_.may_have_surged()); }

 private:
  boost::asio::awaitable<void> read_all();
  boost::asio::awaitable<void> read(SurgeFacts::Question question);
  boost::asio::awaitable<void> take(SurgeBook::Step step);
  boost::asio::awaitable<std::optional<Result<k8s::Pod>>> send(const SurgeBook::Step& step);
  TimePoint throttled_until() const;

  Session& session_;
  Pipeline& pipeline_;
  NodeFeed& node_;
  SurgeBook& book_;
  SingleTask reader_;
  TimePoint throttled_until_{};  // by an answer to a step; the pipeline knows that of an eviction
  std::optional<bool> left_;     // set by give_back()
};

struct GivenBack {
  std::vector<std::string> pods{};  // "namespace/name" of the pods that their ReplicaSets have again
  // The pods that are not given back, each with the reason; and whether a later attempt may succeed for one of them,
  // which it cannot if its ReplicaSet does not exist any more.
  std::vector<LeftOver> left{};
  bool may_heal = false;
};

// Lists the pods of the node and gives back those that a drain has surged, except those that terminate: restores the
// label pod-template-hash, waits until the ReplicaSet has adopted the pod, and removes the mark. Tries the pods in
// rounds until all are given back, the server has refused what is left twice, or `deadline` has passed. A pod whose
// ReplicaSet does not exist any more stays as it is. With `unanswered`, lists the pods again for some seconds although
// none is surged. Fails if the pods cannot be listed. Cancellable. Borrows client and rng.
Task<GivenBack> give_back_surged(k8s::Client& client, Rng& rng, std::string node, Surged surged, TimePoint deadline);

}  // namespace haulout::drain
