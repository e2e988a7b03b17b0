// The feed of the guards (guards.hpp). Looks up the controllers of the pods that must leave, lists and watches the pods
// of these controllers on all nodes, and reports diagnoses about them. Sends only the requests that the enabled guards
// need, and none if all guards are off. Borrows session, pipeline, book and guard.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "drain/controller_book.hpp"
#include "drain/controller_guard.hpp"
#include "drain/diagnoses.hpp"
#include "drain/feed.hpp"
#include "drain/pipeline.hpp"
#include "drain/session.hpp"
#include "k8s/reflector.hpp"

namespace haulout::drain {

class ControllersFeed {
 public:
  // `by_policy` returns the decision of policy about a pod, without guards.
  ControllersFeed(Session& session, Pipeline& pipeline, ControllerBook& book, ControllerGuard& guard,
                  Pipeline::Decide by_policy)
      : session_(session), pipeline_(pipeline), book_(book), guard_(guard), by_policy_(std::move(by_policy)) {}

  // Looks up the controllers of the pods that policy evicts. Without guards: only of pods that an earlier drain has
  // surged, as far as they can be read. If `anew` is true, reads known controllers again, because they may have been
  // scaled since. Returns false if the drain has ended, because the guards need a right that is missing or because a
  // controller could not be read. Cancellable.
  boost::asio::awaitable<bool> look_up(std::vector<k8s::Pod> pods, bool anew);
  // Lists the pods in the namespaces of the controllers, if an enabled guard needs them or a pod was surged, and this
  // is no dry run. Returns false if the drain has ended, because a namespace could not be listed. Cancellable.
  boost::asio::awaitable<bool> list_pods();
  // Forgets the pods that were listed. Called when the plan is made again.
  void forget_pods();

  // Starts the look-ups that are due, and a watch for each namespace that has pods to evict and is not watched yet.
  void look(TaskGroup& group);
  // Starts to list the pods of the controllers again if pods have been parked because of a guard for `doubt_interval`.
  void look_at_held(TaskGroup& group);
  void close() { views_.clear(); }
  void diagnose(std::vector<DiagnosisFact>& facts) const;
  // Returns true if look() is to be called now, because the guard holds a request back until a controller was read.
  bool wants_to_read() { return guard_.take_wish_to_read(); }
  TimePoint next_wake(TimePoint at) const;

 private:
  Task<Controller> find(ControllerQuestion question, TimePoint until, TimePoint others_until);
  Task<Controller> find_scale(k8s::OwnerReference owner, std::string ns, TimePoint until);
  boost::asio::awaitable<void> resolve_all();
  boost::asio::awaitable<void> resolve(ControllerQuestion question);
  boost::asio::awaitable<void> follow(std::string ns);
  boost::asio::awaitable<void> doubt();
  void tell_pipeline();
  bool follows(const k8s::Pod& pod) const;
  std::vector<std::string> held_of(const Controller& controller) const;

  Session& session_;
  Pipeline& pipeline_;
  ControllerBook& book_;
  ControllerGuard& guard_;
  Pipeline::Decide by_policy_;
  // Pods with controllers, by namespace, as they were listed before the watch of the namespace started.
  std::map<std::string, k8s::List<k8s::Replica>> listed_;
  // Plural names of the resources that have a Scale, by API version, then by kind.
  std::map<std::string, std::map<std::string, std::string>> scalable_;
  std::map<std::string, std::unique_ptr<k8s::Reflector<k8s::Replica>>> views_;  // by namespace
  SingleTask resolver_;
  bool learned_ = false;  // a controller was read since the pipeline was last told
  HeldLong held_;         // times how long pods have been parked because of a guard
};

}  // namespace haulout::drain
