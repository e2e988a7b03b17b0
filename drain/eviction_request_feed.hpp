// Carries out what the EvictionRequestBook decides: lists and watches the EvictionRequests of this node and the
// Evictions that follow from them, creates requests, and withdraws them. Sends nothing if the option is off, or if no
// pod of the node has responders. Borrows session, pipeline, node and book. Also the function that withdraws what a
// drain has left behind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "drain/diagnoses.hpp"
#include "drain/eviction_request_book.hpp"
#include "drain/feed.hpp"
#include "drain/left_over.hpp"
#include "drain/node_feed.hpp"
#include "drain/pipeline.hpp"
#include "drain/session.hpp"
#include "k8s/reflector.hpp"

namespace haulout::drain {

class EvictionRequestFeed {
 public:
  // How many requests may be in flight at the same time.
  static constexpr std::size_t most_requests = 10;

  EvictionRequestFeed(Session& session, Pipeline& pipeline, NodeFeed& node, EvictionRequestBook& book)
      : session_(session), pipeline_(pipeline), node_(node), book_(book) {}

  void look(TaskGroup& group);
  void diagnose(std::vector<DiagnosisFact>& facts) const { book_.diagnose(pipeline_.leaving(), facts); }
  // Returns what a dry run tells. Empty if the option is off, or no pod would be asked for.
  std::string plan() const;
  TimePoint next_wake(TimePoint at) const { return book_.next_due(at); }
  // Says that an earlier process may have left requests open. Until they are listed, some may be left, also if the
  // option is off now.
  void expect() { expected_ = true; }
  // Withdraws the requests for pods that still exist when the drain has ended. Adds to the message of the drain what
  // could not be withdrawn. Cancellable.
  boost::asio::awaitable<void> withdraw();
  // Returns true if requests may be open: before withdraw() if one was sent, found or expected, after it if one could
  // not be withdrawn.
  bool may_be_left() const;
  Asked asked() const { return book_.asked(pipeline_.pods()); }
  void close();

 private:
  // Follows the requests, or the Evictions: lists them first, because the book has to know when it knows all.
  template <class T>
  struct Followed {
    std::string problem;  // a sentence for the case that they cannot be listed
    k8s::ListOptions which;
    void (EvictionRequestBook::*changed)(const std::string& uid, const T* object);
    void (EvictionRequestBook::*known)();
    void (EvictionRequestBook::*failed)(const Error& error);
    std::unique_ptr<k8s::Reflector<T>>& view;
  };
  template <class T>
  boost::asio::awaitable<void> follow(Followed<T> followed);
  boost::asio::awaitable<void> take(EvictionRequestBook::Step step);
  Task<k8s::EvictionRequest> send(EvictionRequestBook::Step step);
  bool is_unsure() const { return expected_ && !book_.are_requests_known(); }
  void news();

  Session& session_;
  Pipeline& pipeline_;
  NodeFeed& node_;
  EvictionRequestBook& book_;
  bool follows_ = false;
  bool expected_ = false;
  std::unique_ptr<k8s::Reflector<k8s::EvictionRequest>> requests_;
  std::unique_ptr<k8s::Reflector<k8s::EvictionProcess>> processes_;
  std::optional<bool> left_;  // set by withdraw()
};

struct Withdrawn {
  std::vector<std::string> pods{};  // "namespace/name" of the pods whose requests were withdrawn
  std::vector<LeftOver> left{};
  bool unserved = false;  // the server does not serve EvictionRequests now
};

// Lists Haulout's EvictionRequests of the Node with this UID, and withdraws those that ask for the eviction of a pod.
// Tries again until none is left, the server has refused what is left twice, or `deadline` has passed. With
// `asked.unanswered`, lists them again for some seconds although none is open. Fails if they cannot be listed; if the
// server does not serve them, that is a failure only with `asked.seen`. Cancellable. Borrows client and rng.
Task<Withdrawn> withdraw_requests(k8s::Client& client, Rng& rng, std::string node_uid, Asked asked, TimePoint deadline);

}  // namespace haulout::drain
